import type { Clock, Timer } from './clock.js';
import type { Events } from './events.js';

/** Removes the value, or marks it stale. */
export type Eviction = 'evict' | 'expire';

/** One that the store did not acknowledge; a later one of the same key is another. */
export interface PendingEviction {
  readonly key: string;
  readonly by: Eviction;
}

/** Evictions that are remembered at most; beyond that the oldest is given up. */
const MOST = 10_000;
/** Milliseconds between two tries. */
const RETRY_EVERY = 250;

/** Evictions that the store did not acknowledge, the latest of each key, until they are made up for. */
export class PendingEvictions {
  readonly #evict: (key: string, by: Eviction) => Promise<void>;
  readonly #clock: Clock;
  readonly #events: Events;
  readonly #pending = new Map<string, PendingEviction>();
  #timer: Timer | undefined;
  #closed = false;

  constructor(evict: (key: string, by: Eviction) => Promise<void>, clock: Clock, events: Events) {
    this.#evict = evict;
    this.#clock = clock;
    this.#events = events;
  }

  /** While there is one, what the store has for this key can't be trusted. */
  of(key: string): PendingEviction | undefined {
    return this.#pending.size > 0 ? this.#pending.get(key) : undefined;
  }

  /** An eviction that would do as well for what is pending: marking a value stale does not make up for its removal. */
  including(key: string, by: Eviction): Eviction {
    return this.of(key)?.by === 'evict' ? 'evict' : by;
  }

  /** @returns whether it will be made up for; not so when the cache has closed */
  add(key: string, by: Eviction): boolean {
    if (this.#closed) return false;
    this.#putLast({ key, by: this.including(key, by) });
    const [oldest] = this.#pending.values();
    if (this.#pending.size > MOST && oldest) this.#giveUp(oldest);
    this.#retryLater();
    return true;
  }

  /** The store has acknowledged one that was sent when this was pending; not so one that failed meanwhile. */
  madeUpFor(pending: PendingEviction | undefined): void {
    if (pending && this.#isLatest(pending)) this.#pending.delete(pending.key);
  }

  close(): void {
    this.#closed = true;
    this.#pending.clear();
    this.#timer?.clear();
  }

  #isLatest(pending: PendingEviction): boolean {
    return this.#pending.get(pending.key) === pending;
  }

  #putLast(pending: PendingEviction): void {
    this.#pending.delete(pending.key);
    this.#pending.set(pending.key, pending);
  }

  #retryLater(): void {
    this.#timer ??= this.#clock.after(RETRY_EVERY, () => void this.#retry());
  }

  /** The oldest first and alone: as long as that fails, the others would too. */
  async #retry(): Promise<void> {
    const [first] = this.#pending.values();
    if (first && (await this.#makeUpFor(first))) {
      await Promise.all([...this.#pending.values()].map((pending) => this.#makeUpFor(pending)));
    }
    this.#timer = undefined;
    if (this.#pending.size > 0) this.#retryLater();
  }

  async #makeUpFor(pending: PendingEviction): Promise<boolean> {
    const { key, by } = pending;
    try {
      await this.#evict(key, by);
    } catch {
      // Another key's server may well be there.
      if (this.#isLatest(pending)) this.#putLast(pending);
      return false;
    }
    this.madeUpFor(pending);
    if (this.#events.observed) this.#events.emit({ type: by, key });
    return true;
  }

  #giveUp({ key }: PendingEviction): void {
    this.#pending.delete(key);
    const error = new Error(`More than ${MOST} evictions wait for the store.`);
    if (this.#events.observed) this.#events.emit({ type: 'evict-failed', key, error, willRetry: false });
  }
}
