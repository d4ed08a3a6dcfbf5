import { LRUCache } from 'lru-cache';
import type { Answer } from './answer.js';
import type { Clock } from './clock.js';
import type { StoredEntry } from './store.js';

/** The longest that a value is kept, in milliseconds, and how many are for each of the store's servers. */
const MOST_KEPT = 1_000;
const MOST_KEPT_KEYS = 10_000;

/** What was loaded while the store, or the one of its servers that the key lies on, is away. */
export class Kept {
  readonly #clock: Clock;
  readonly #partOf: (key: string) => string;
  readonly #parts = new Map<string, LRUCache<string, Answer>>();

  /** @param partOf which of the store's servers a key lies on */
  constructor(clock: Clock, partOf: (key: string) => string) {
    this.#clock = clock;
    this.#partOf = partOf;
  }

  of(key: string): Answer | undefined {
    return this.#parts.get(this.#partOf(key))?.get(key);
  }

  /** For its `ttl`, at most a second. */
  keep(key: string, answer: Answer, { px, freshFor = px }: StoredEntry): void {
    const name = this.#partOf(key);
    let part = this.#parts.get(name);
    if (!part) {
      part = new LRUCache({ max: MOST_KEPT_KEYS, ttl: MOST_KEPT, ttlResolution: 0, perf: this.#clock });
      this.#parts.set(name, part);
    }
    part.set(key, answer, { ttl: Math.min(freshFor, MOST_KEPT) });
  }

  /** Wherever it is kept: a key may have moved. */
  forget(key: string): void {
    for (const part of this.#parts.values()) part.delete(key);
  }

  /** The server of this key is back: of no use is what was kept meanwhile. */
  storeAnswered(key: string): void {
    if (this.#parts.size === 0) return;
    this.forget(key);
    this.#parts.delete(this.#partOf(key));
  }
}
