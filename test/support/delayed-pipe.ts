/** What is under way to one socket: each chunk is written when its time has come, never before the one in front of it. */
import type { Socket } from 'node:net';

/** In a chunk's place: the sender closed its side. */
export const END = Symbol('end');

export class DelayedPipe {
  private readonly queue: { due: number; item: Buffer | typeof END }[] = [];
  private lastDue = 0;
  private timer?: NodeJS.Timeout;

  constructor(
    private readonly target: Socket,
    private readonly isHeld: () => boolean,
  ) {}

  push(item: Buffer | typeof END, delay: number): void {
    this.lastDue = Math.max(this.lastDue, performance.now() + delay);
    this.queue.push({ due: this.lastDue, item });
    this.flush();
  }

  /** Writes what is due, and comes back for the rest. */
  flush(): void {
    clearTimeout(this.timer);
    while (this.queue.length > 0 && !this.isHeld()) {
      const wait = this.queue[0]!.due - performance.now();
      if (wait > 0) {
        this.timer = setTimeout(() => this.flush(), wait);
        return;
      }
      this.write(this.queue.shift()!.item);
    }
  }

  clear(): void {
    clearTimeout(this.timer);
    this.queue.length = 0;
  }

  private write(item: Buffer | typeof END): void {
    if (!this.target.writable) return;
    if (item === END) this.target.end();
    else this.target.write(item);
  }
}
