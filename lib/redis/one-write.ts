import { type Client, isCluster } from './client.js';

type Socket = Pick<import('node:stream').Writable, 'cork' | 'uncork'>;

/**
 * Commands that are sent in one tick of the event loop leave in one write to the socket: a write is a system call, which
 * costs more than all else that a command does here. Of a Cluster each command is a write: its sockets are its own.
 */
export class OneWrite {
  #held: Socket | undefined;

  /** To be called before a command is sent; it leaves when the promise jobs of this tick are done. */
  hold(client: Client): void {
    if (isCluster(client)) return;
    const socket = client.stream as Socket | undefined;
    if (!socket || socket === this.#held) return;
    socket.cork();
    this.#held = socket;
    process.nextTick(() => {
      if (this.#held === socket) this.#held = undefined;
      socket.uncork();
    });
  }
}
