import type { Clock } from './clock.js';

/** How long somebody is willing to wait: for so many milliseconds, and until a signal aborts. */
export class Patience {
  readonly #clock: Clock;
  readonly #startedAt: number;
  readonly #wait: number;
  readonly #signal: AbortSignal | undefined;
  /** By the timer, which may be early by a part of a millisecond. */
  #hasEnded = false;
  #aborted: { readonly reason: unknown } | undefined;
  #ended: Promise<void> | undefined;
  #end: (() => void) | undefined;
  #stop: (() => void) | undefined;

  constructor(clock: Clock, wait: number, signal: AbortSignal | undefined) {
    this.#clock = clock;
    this.#startedAt = clock.now();
    this.#wait = wait;
    this.#signal = signal;
  }

  /** Resolves when it is over. Who never waits needs neither its timer nor its listener, so they begin here. */
  get ended(): Promise<void> {
    this.#ended ??= new Promise((resolve) => {
      this.#end = resolve;
      if (this.isOver) resolve();
      const end = () => {
        this.#hasEnded = true;
        resolve();
      };
      const timer = this.#clock.after(Math.max(0, this.#wait - this.waited), end);
      const abort = () => resolve();
      this.#signal?.addEventListener('abort', abort, { once: true });
      const stop = () => {
        timer.clear();
        this.#signal?.removeEventListener('abort', abort);
      };
      this.#stop = stop;
    });
    return this.#ended;
  }

  /** Milliseconds waited so far. */
  get waited(): number {
    return this.#clock.now() - this.#startedAt;
  }

  get isOver(): boolean {
    return this.#hasEnded || this.waited >= this.#wait || this.wasAborted;
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
    this.#end?.();
  }

  /** Ends its timer and its listening. */
  stop(): void {
    this.#stop?.();
  }
}
