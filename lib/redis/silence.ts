import type { Redis } from 'ioredis';
import { type Client, isCluster } from './client.js';

/** So often it is looked, within the time that a connection may be silent. */
const LOOKS = 5;

/** What ioredis knows of the commands that have no reply yet. */
interface Queue {
  readonly commandQueue: { readonly length: number };
}

/**
 * Ends each connection of a client that says nothing for so many milliseconds though replies are due: it is dead, or its host
 * is, and a new one may reach the host that took over.
 *
 * The `socketTimeout` of ioredis does the same by a timer and a listener for each command, which is a tenth of the time of a
 * hit; and it ends good connections when it is the process that was frozen.
 */
export function endSilent(client: Client, limit: number): void {
  if (!isCluster(client)) {
    watch(client, limit);
    return;
  }
  client.on('+node', (node: Redis) => watch(node, limit));
  for (const node of client.nodes()) watch(node, limit);
}

function watch(client: Redis, limit: number): void {
  client.on('connect', () => {
    const { stream } = client;
    // ioredis listens once more for each READONLY that answers what is under way, which Node would call a leak.
    stream.setMaxListeners(0);
    let heard = stream.bytesRead;
    let silent = 0;
    const look = () => {
      const { commandQueue } = client as unknown as Queue;
      const isSilent = stream.bytesRead === heard && commandQueue.length > 0;
      heard = stream.bytesRead;
      silent = isSilent ? silent + 1 : 0;
      if (silent === LOOKS) stream.destroy(new Error(`No word from Redis for ${limit} ms, though replies were due.`));
    };
    const timer = setInterval(look, limit / LOOKS).unref();
    stream.once('close', () => clearInterval(timer));
  });
}
