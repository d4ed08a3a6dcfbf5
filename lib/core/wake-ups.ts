import type { Store } from './store.js';

/** Called when a token's lock has ended (`certain`), or when that may have been missed. */
export type Wake = (certain: boolean) => void;

/** The wake-ups of this process, handed on to whoever waits for a token. */
export class WakeUps {
  readonly #watches = new Map<string, Set<TokenWatch>>();
  readonly #recordings = new Set<Recording>();

  constructor(store: Pick<Store, 'onWake'>) {
    store.onWake((token) => (token === undefined ? this.#wakeAll() : this.#wake(token)));
  }

  /**
   * Remembers which tokens end from now on. Wake-ups come on another connection than replies: one may be here before the
   * reply that says whom to wait for, so recording starts before the command is sent.
   */
  record(): Recording {
    const recording: Recording = {
      ended: undefined,
      watch: (token) => {
        this.#recordings.delete(recording);
        return this.#watch(token, recording.ended?.has(token) ?? false);
      },
      stop: () => this.#recordings.delete(recording),
    };
    this.#recordings.add(recording);
    return recording;
  }

  #watch(token: string, hasEnded: boolean): TokenWatch {
    const watches = this.#watches.get(token) ?? new Set();
    this.#watches.set(token, watches);
    const watch = new TokenWatch(hasEnded, () => {
      watches.delete(watch);
      if (watches.size === 0 && this.#watches.get(token) === watches) this.#watches.delete(token);
    });
    watches.add(watch);
    return watch;
  }

  #wake(token: string): void {
    for (const recording of this.#recordings) {
      // Most see none end.
      recording.ended ??= new Set();
      recording.ended.add(token);
    }
    for (const watch of [...(this.#watches.get(token) ?? [])]) watch.wake(true);
  }

  #wakeAll(): void {
    for (const watches of [...this.#watches.values()]) for (const watch of [...watches]) watch.wake(false);
  }
}

export interface Recording {
  /** The tokens that have ended since it began. */
  ended: Set<string> | undefined;
  /** Ends it, and watches a token from when it began. To be stopped. */
  watch(token: string): TokenWatch;
  /** Ends it. */
  stop(): void;
}

/** One who watches for the end of one token's lock. */
export class TokenWatch {
  readonly stop: () => void;
  #hasEnded: boolean;
  #listener: Wake | undefined;

  constructor(hasEnded: boolean, stop: () => void) {
    this.#hasEnded = hasEnded;
    this.stop = stop;
  }

  /** Calls `listener` at each wake-up; at once if the lock has ended before. */
  listen(listener: Wake): void {
    this.#listener = listener;
    if (this.#hasEnded) listener(true);
  }

  wake(certain: boolean): void {
    this.#hasEnded ||= certain;
    this.#listener?.(certain);
  }
}
