import type { Redis } from 'ioredis';
import { type Client, isCluster } from './client.js';

/** What ioredis has that may be `unref`ed: its socket, and its timer for the next attempt to connect, which it keeps to itself. */
interface Handles {
  readonly stream?: { unref?(): unknown };
  readonly reconnectTimeout?: { unref?(): unknown } | null;
}

/** As Node's `unref`, for all sockets of a client, also those to come: the process may end though they are open. */
export function unref(client: Client): void {
  letGo(client);
  if (!isCluster(client)) return;
  client.on('+node', (node: Redis) => letGo(node));
  for (const node of client.nodes()) letGo(node);
}

function letGo(client: Client): void {
  const unrefAll = () => {
    const { stream, reconnectTimeout } = client as unknown as Handles;
    stream?.unref?.();
    reconnectTimeout?.unref?.();
  };
  unrefAll();
  client.on('connect', unrefAll);
  client.on('reconnecting', unrefAll);
}
