import type { Clock } from './clock.js';

/** How long somebody is willing to wait: for so many milliseconds, and until a signal aborts. */
export class Patience {
  /** Resolves when it is over. */
  readonly ended: Promise<void>;
  readonly #clock: Clock;
  readonly #startedAt: number;
  readonly #wait: number;
  readonly #signal: AbortSignal | undefined;
  #aborted: { readonly reason: unknown } | undefined;
  #end!: () => void;
  #stop: () => void = () => {};

  constructor(clock: Clock, wait: number, signal: AbortSignal | undefined) {
    this.#clock = clock;
    this.#startedAt = clock.now();
    this.#wait = wait;
    this.#signal = signal;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
      const timer = clock.after(wait, resolve);
      const abort = () => resolve();
      signal?.addEventListener('abort', abort, { once: true });
      this.#stop = () => {
        timer.clear();
        signal?.removeEventListener('abort', abort);
      };
    });
  }

  /** Milliseconds waited so far. */
  get waited(): number {
    return this.#clock.now() - this.#startedAt;
  }

  get isOver(): boolean {
    return this.waited >= this.#wait || this.wasAborted;
  }

  get wasAborted(): boolean {
    return this.#aborted !== undefined || this.#signal?.aborted === true;
  }

  /** @throws the reason, when the signal has aborted, or this was */
  throwIfAborted(): void {
    if (this.#aborted) throw this.#aborted.reason;
    this.#signal?.throwIfAborted();
  }

  /** Ends it now. */
  abort(reason: unknown): void {
    this.#aborted ??= { reason };
    this.#end();
  }

  /** Ends its timer and its listening. */
  stop(): void {
    this.#stop();
  }
}
