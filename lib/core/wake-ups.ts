import type { Store } from './store.js';

/** Called when a token's lock has ended (`certain`), or when that may have been missed. */
export type Wake = (certain: boolean) => void;

/** What was heard since recording began. */
export interface Recording {
  /** Whether the token's lock has ended since. */
  heard(token: string): boolean;
  stop(): void;
}

/** The wake-ups of this process, handed on to whoever waits for a token. */
export class WakeUps {
  readonly #waiting = new Map<string, Set<Wake>>();
  readonly #recordings = new Set<Set<string>>();

  constructor(store: Pick<Store, 'onWake'>) {
    store.onWake((token) => (token === undefined ? this.#wakeAll() : this.#wake(token)));
  }

  /** Calls `wake` each time the token's lock has ended, or may have. Returns how to stop that. */
  on(token: string, wake: Wake): () => void {
    const wakes = this.#waiting.get(token) ?? new Set();
    this.#waiting.set(token, wakes.add(wake));
    return () => {
      wakes.delete(wake);
      if (wakes.size === 0 && this.#waiting.get(token) === wakes) this.#waiting.delete(token);
    };
  }

  /**
   * Remembers which tokens end from now on. Wake-ups come on another connection than replies: one may be here before the
   * reply that says whom to wait for, so recording starts before the command is sent.
   */
  record(): Recording {
    const ended = new Set<string>();
    this.#recordings.add(ended);
    return { heard: (token) => ended.has(token), stop: () => this.#recordings.delete(ended) };
  }

  #wake(token: string): void {
    for (const ended of this.#recordings) ended.add(token);
    for (const wake of [...(this.#waiting.get(token) ?? [])]) wake(true);
  }

  #wakeAll(): void {
    for (const wakes of [...this.#waiting.values()]) for (const wake of [...wakes]) wake(false);
  }
}
