import type { Redis } from 'ioredis';
import { type Client, isCluster } from './client.js';

/** Who isn't connected yet has no stream. */
interface Connected {
  readonly stream?: Redis['stream'];
}

const gathering = new WeakSet<Client>();

/**
 * What is sent to a server until the end of this turn of the event loop leaves in one write: a load of many keys takes and
 * ends a lock for each, and a write for each would cost more than all the rest. The order stays.
 */
export function gatherWrites(client: Client): void {
  if (gathering.has(client)) return;
  gathering.add(client);
  const streams = connectionsOf(client).flatMap(({ stream }) => stream ?? []);
  for (const stream of streams) stream.cork();
  // Not `nextTick`: between two timers, such as those of renewals, there is one.
  setImmediate(() => {
    gathering.delete(client);
    for (const stream of streams) stream.uncork();
  });
}

/**
 * What `send` sends to one server leaves in one write. A pipeline of ioredis would do the same, but it costs more than all the
 * rest of a lone read.
 */
export function inOneWrite<T>(client: Redis, send: () => T): T {
  const { stream } = client as Connected;
  stream?.cork();
  try {
    return send();
  } finally {
    // Also when ioredis throws, or nothing would leave any more.
    stream?.uncork();
  }
}

/** The connections that scripts are sent by. */
function connectionsOf(client: Client): Connected[] {
  return isCluster(client) ? client.nodes('master') : [client];
}
