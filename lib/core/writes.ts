import { CacheUnavailableError } from './errors.js';
import type { Flights } from './flights.js';
import type { Kept } from './kept.js';
import type { NearCache } from './near-cache.js';
import type { Eviction } from './pending-evictions.js';
import type { StoredEntry } from './store.js';
import type { Tower } from './tower.js';

/** What changes an entry from outside of a load. */
export class Writes {
  readonly #tower: Tower;
  readonly #flights: Flights;
  readonly #kept: Kept;
  readonly #near: NearCache | undefined;
  readonly #lease: number;
  /** Between its two steps a `set` has the lock, so that none is left behind when the cache closes. */
  readonly #underWay = new Set<Promise<void>>();

  constructor(tower: Tower, flights: Flights, kept: Kept, near: NearCache | undefined, lease: number) {
    this.#tower = tower;
    this.#flights = flights;
    this.#kept = kept;
    this.#near = near;
    this.#lease = lease;
  }

  /** Those that are not over. */
  get underWay(): Iterable<Promise<void>> {
    return this.#underWay;
  }

  /**
   * @param ttl milliseconds it is fresh, to be told in the event
   * @throws CacheUnavailableError when the store did not confirm it
   */
  async set(key: string, entry: StoredEntry, ttl: number): Promise<void> {
    await this.#write(key, this.#set(key, entry));
    const { events } = this.#tower;
    if (events.observed) events.emit({ type: 'set', key, ttl });
  }

  /** @throws what the store rejects with */
  async evict(key: string, by: Eviction): Promise<void> {
    const { store, events } = this.#tower;
    const replaced = this.#flights.of(key)?.replacing();
    try {
      await this.#write(key, store.evict(key, by));
    } catch (error) {
      replaced?.(false);
      throw error;
    }
    replaced?.(true);
    if (events.observed) events.emit({ type: by, key });
  }

  /** Two steps, so that a write that is delayed can't land on top of a newer one: only the claim's own token may end. */
  async #set(key: string, entry: StoredEntry): Promise<void> {
    const token = this.#tower.newToken();
    const { store } = this.#tower;
    const replaced = this.#flights.of(key)?.replacing();
    try {
      await store.claim(key, token, this.#lease);
      replaced?.(true);
      const end = await store.end({ kind: 'cache', key, token, entry, claimed: true }, this.#lease);
      // Who came between may never write, and what was there before must not stay.
      if (end.is === 'refused') await store.evict(key, 'evict');
      else if (!end.stored) throw new Error(end.error);
    } catch (cause) {
      replaced?.(false);
      throw new CacheUnavailableError('set', { cause });
    }
  }

  /** What is kept of this key goes, and also what a load or a read that is under way keeps until the write is over. */
  async #write(key: string, write: Promise<void>): Promise<void> {
    this.#forget(key);
    this.#underWay.add(write);
    try {
      await write;
    } finally {
      this.#underWay.delete(write);
      this.#forget(key);
    }
  }

  #forget(key: string): void {
    this.#kept.forget(key);
    this.#near?.changed(key);
  }
}
