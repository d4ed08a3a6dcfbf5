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
    const recording = new Recording(this);
    this.#recordings.add(recording);
    return recording;
  }

  /** @internal Ends a recording. */
  stop(recording: Recording): void {
    this.#recordings.delete(recording);
  }

  /** @internal Watches a token; `missed` says whether its end has been seen, or may have been missed, before. */
  watch(token: string, missed: boolean | undefined): TokenWatch {
    const watches = this.#watches.get(token) ?? new Set();
    this.#watches.set(token, watches);
    const watch = new TokenWatch(missed, () => {
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
    for (const recording of this.#recordings) recording.isUnsure = true;
    for (const watches of [...this.#watches.values()]) for (const watch of [...watches]) watch.wake(false);
  }
}

export class Recording {
  /** The tokens that have ended since it began. */
  ended: Set<string> | undefined;
  /** More may have ended, of which nobody was told: the subscription was lost. */
  isUnsure = false;
  readonly #wakeUps: WakeUps;

  constructor(wakeUps: WakeUps) {
    this.#wakeUps = wakeUps;
  }

  /** Ends it, and watches a token from when it began. To be stopped. */
  watch(token: string): TokenWatch {
    this.stop();
    const hasEnded = this.ended?.has(token) ?? false;
    return this.#wakeUps.watch(token, hasEnded || this.isUnsure ? hasEnded : undefined);
  }

  /** Ends it. */
  stop(): void {
    this.#wakeUps.stop(this);
  }
}

/** One who watches for the end of one token's lock. */
export class TokenWatch {
  readonly stop: () => void;
  /** `true`: the lock has ended; `false`: it may have, before anybody listened. */
  #told: boolean | undefined;
  #listener: Wake | undefined;

  constructor(told: boolean | undefined, stop: () => void) {
    this.#told = told;
    this.stop = stop;
  }

  /** Calls `listener` at each wake-up; at once if the lock has ended, or may have before anybody listened. */
  listen(listener: Wake): void {
    const told = this.#told;
    if (told === false) this.#told = undefined;
    this.#listener = listener;
    if (told !== undefined) listener(told);
  }

  wake(certain: boolean): void {
    if (certain) this.#told = true;
    else if (!this.#listener) this.#told ??= false;
    this.#listener?.(certain);
  }
}
