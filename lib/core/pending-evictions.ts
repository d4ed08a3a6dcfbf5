import type { Clock, Timer } from './clock.js';
import type { Events } from './events.js';

/** Removes the value, or marks it stale. */
export type Eviction = 'evict' | 'expire';

/** Evictions that are remembered at most; beyond that the oldest is given up. */
const MOST = 10_000;
/** Milliseconds between two tries. */
const RETRY_EVERY = 250;

/** Evictions that the store did not acknowledge, the latest of each key, until they are made up for. */
export class PendingEvictions {
  readonly #evict: (key: string, by: Eviction) => Promise<void>;
  readonly #clock: Clock;
  readonly #events: Events;
  readonly #pending = new Map<string, Eviction>();
  #timer: Timer | undefined;

  constructor(evict: (key: string, by: Eviction) => Promise<void>, clock: Clock, events: Events) {
    this.#evict = evict;
    this.#clock = clock;
    this.#events = events;
  }

  /** Whether what the store has for this key can't be trusted. */
  has(key: string): boolean {
    return this.#pending.size > 0 && this.#pending.has(key);
  }

  add(key: string, by: Eviction): void {
    this.#pending.delete(key);
    this.#pending.set(key, by);
    const [oldest] = this.#pending.keys();
    if (this.#pending.size > MOST && oldest !== undefined) this.#giveUp(oldest);
    this.#retryLater();
  }

  /** The store has acknowledged a newer eviction of this key. */
  drop(key: string): void {
    this.#pending.delete(key);
  }

  close(): void {
    this.#pending.clear();
    this.#timer?.clear();
  }

  #retryLater(): void {
    this.#timer ??= this.#clock.after(RETRY_EVERY, () => void this.#retry());
  }

  /** The oldest first and alone: as long as that fails, the others would too. */
  async #retry(): Promise<void> {
    const [first] = this.#pending;
    if (first && (await this.#makeUpFor(first))) {
      await Promise.all([...this.#pending].map((eviction) => this.#makeUpFor(eviction)));
    }
    this.#timer = undefined;
    if (this.#pending.size > 0) this.#retryLater();
  }

  async #makeUpFor([key, by]: readonly [string, Eviction]): Promise<boolean> {
    try {
      await this.#evict(key, by);
    } catch {
      // Another key's server may well be there.
      if (this.#pending.delete(key)) this.#pending.set(key, by);
      return false;
    }
    if (this.#pending.get(key) === by) this.#pending.delete(key);
    if (this.#events.observed) this.#events.emit({ type: by, key });
    return true;
  }

  #giveUp(key: string): void {
    this.#pending.delete(key);
    const error = new Error(`More than ${MOST} evictions wait for the store.`);
    if (this.#events.observed) this.#events.emit({ type: 'evict-failed', key, error, willRetry: false });
  }
}
