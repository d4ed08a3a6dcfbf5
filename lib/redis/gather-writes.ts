import type { Redis } from 'ioredis';
import { type Client, isCluster } from './client.js';

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

/** The connections that scripts are sent by. One that is not there yet has no stream. */
function connectionsOf(client: Client): { readonly stream?: Redis['stream'] }[] {
  return isCluster(client) ? client.nodes('master') : [client];
}
