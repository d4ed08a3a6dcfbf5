import type { Clock, Timer } from './clock.js';
import type { Events } from './events.js';

/** Removes the value, or marks it stale. */
export type Eviction = 'evict' | 'expire';

/** Evictions that are remembered at most; beyond that the oldest is given up. */
const MOST = 10_000;
/** Milliseconds between two tries when nobody reads meanwhile. */
const RETRY_EVERY = 500;

/** Evictions that the store did not acknowledge, the latest of each key: made up for before anything is read again. */
export class PendingEvictions {
  readonly #evict: (key: string, by: Eviction) => Promise<void>;
  readonly #clock: Clock;
  readonly #events: Events;
  readonly #pending = new Map<string, Eviction>();
  #settling: Promise<void> | undefined;
  #timer: Timer | undefined;

  constructor(evict: (key: string, by: Eviction) => Promise<void>, clock: Clock, events: Events) {
    this.#evict = evict;
    this.#clock = clock;
    this.#events = events;
  }

  get size(): number {
    return this.#pending.size;
  }

  add(key: string, by: Eviction): void {
    this.#pending.delete(key);
    this.#pending.set(key, by);
    const [oldest] = this.#pending.keys();
    if (this.#pending.size > MOST && oldest !== undefined) {
      this.#pending.delete(oldest);
      const error = new Error(`More than ${MOST} evictions wait for the store.`);
      if (this.#events.observed) this.#events.emit({ type: 'evict-failed', key: oldest, error, willRetry: false });
    }
    this.#timer ??= this.#clock.after(RETRY_EVERY, () => this.#retry());
  }

  /** The store has acknowledged a newer eviction of this key. */
  drop(key: string): void {
    this.#pending.delete(key);
  }

  /**
   * Makes up for all of them.
   *
   * @throws the store's error when one of them is still not acknowledged
   */
  settle(): Promise<void> {
    this.#settling ??= this.#settle().finally(() => {
      this.#settling = undefined;
    });
    return this.#settling;
  }

  close(): void {
    this.#pending.clear();
    this.#timer?.clear();
  }

  async #settle(): Promise<void> {
    const evictions = [...this.#pending].map(async ([key, by]) => {
      await this.#evict(key, by);
      if (this.#pending.get(key) === by) this.#pending.delete(key);
      if (this.#events.observed) this.#events.emit({ type: by, key });
    });
    await Promise.all(evictions);
  }

  #retry(): void {
    this.#timer = undefined;
    this.settle().then(
      () => {},
      () => {
        if (this.#pending.size > 0) this.#timer ??= this.#clock.after(RETRY_EVERY, () => this.#retry());
      },
    );
  }
}
