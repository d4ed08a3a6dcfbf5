import type { Clock } from './clock.js';
import type { Events } from './events.js';
import { MOST_RETRIES, Retries } from './retries.js';

/** Removes the value, or marks it stale. */
export type Eviction = 'evict' | 'expire';

/** One that the store did not acknowledge; a later one of the same key is another. */
export interface PendingEviction {
  readonly key: string;
  readonly by: Eviction;
}

/** Evictions that the store did not acknowledge, the latest of each key, until they are made up for. */
export class PendingEvictions {
  readonly #evict: (key: string, by: Eviction) => Promise<void>;
  readonly #events: Events;
  readonly #pending = new Map<string, PendingEviction>();
  readonly #retries: Retries<PendingEviction>;
  #closed = false;

  constructor(evict: (key: string, by: Eviction) => Promise<void>, clock: Clock, events: Events) {
    this.#evict = evict;
    this.#events = events;
    this.#retries = new Retries(clock, (pending) => this.#makeUpFor(pending));
  }

  get isEmpty(): boolean {
    return this.#pending.size === 0;
  }

  /** While there is one, what the store has for this key can't be trusted. */
  of(key: string): PendingEviction | undefined {
    return this.isEmpty ? undefined : this.#pending.get(key);
  }

  /** An eviction that would do as well for what is pending: marking a value stale does not make up for its removal. */
  including(key: string, by: Eviction): Eviction {
    return this.of(key)?.by === 'evict' ? 'evict' : by;
  }

  /** @returns whether it will be made up for; not so when the cache has closed */
  add(key: string, by: Eviction): boolean {
    if (this.#closed) return false;
    const pending = { key, by: this.including(key, by) };
    this.#forget(this.of(key));
    this.#pending.set(key, pending);
    const givenUp = this.#retries.add(pending);
    if (givenUp) this.#giveUp(givenUp);
    return true;
  }

  /** The store has acknowledged one that was sent when this was pending; not so one that failed meanwhile. */
  madeUpFor(pending: PendingEviction | undefined): void {
    if (pending && this.#pending.get(pending.key) === pending) this.#forget(pending);
  }

  close(): void {
    this.#closed = true;
    this.#pending.clear();
    this.#retries.close();
  }

  #forget(pending: PendingEviction | undefined): void {
    if (!pending) return;
    this.#pending.delete(pending.key);
    this.#retries.delete(pending);
  }

  async #makeUpFor(pending: PendingEviction): Promise<boolean> {
    const { key, by } = pending;
    await this.#evict(key, by);
    this.madeUpFor(pending);
    if (this.#events.observed) this.#events.emit({ type: by, key });
    return true;
  }

  #giveUp(pending: PendingEviction): void {
    this.#forget(pending);
    if (!this.#events.observed) return;
    const error = new Error(`More than ${MOST_RETRIES} evictions wait for the store.`);
    this.#events.emit({ type: 'evict-failed', key: pending.key, error, willRetry: false });
  }
}
