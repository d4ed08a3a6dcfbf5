import { LRUCache } from 'lru-cache';
import type { Answer } from './answer.js';
import type { Clock } from './clock.js';
import type { StoredEntry } from './store.js';

/** The longest that a value loaded while the store is away is kept, in milliseconds, and how many are. */
const MOST_KEPT = 1_000;
const MOST_KEPT_KEYS = 10_000;

/** What was loaded while the store is away; of no use as soon as it is back. */
export class Kept {
  readonly #answers: LRUCache<string, Answer>;

  constructor(clock: Clock) {
    this.#answers = new LRUCache({ max: MOST_KEPT_KEYS, ttl: MOST_KEPT, ttlResolution: 0, perf: clock });
  }

  of(key: string): Answer | undefined {
    return this.#answers.get(key);
  }

  /** For its `ttl`, at most a second. */
  keep(key: string, answer: Answer, { px, freshFor = px }: StoredEntry): void {
    this.#answers.set(key, answer, { ttl: Math.min(freshFor, MOST_KEPT) });
  }

  forget(key: string): void {
    this.#answers.delete(key);
  }

  clear(): void {
    if (this.#answers.size > 0) this.#answers.clear();
  }
}
