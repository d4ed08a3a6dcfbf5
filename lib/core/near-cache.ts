import { LRUCache } from 'lru-cache';
import { type Aged, isDueEarly } from './aged.js';
import type { Answer } from './answer.js';
import type { Clock } from './clock.js';
import type { ResolvedNear } from './near-options.js';
import type { Isolation } from './options.js';
import type { ChangeListener } from './store.js';
import type { Random } from './waiting.js';

/** So many keys that were changed lately are known one by one; beyond that, all reads under way count as overtaken. */
const MOST_CHANGES = 10_000;

/** How often the time that was read is good for, within one tick of the event loop. */
const QUESTIONS = 32;

/** The moment at which a read is sent. */
export interface ReadStart {
  /** How many changes had been told. */
  readonly changes: number;
  /** On our own clock. */
  readonly sentAt: number;
}

/** A value in the near cache. */
export class NearEntry {
  readonly answer: Answer;
  /** What most calls get, without another look into memory. */
  readonly #shared: unknown;
  /** Milliseconds since the epoch, in the store's time. */
  readonly freshUntil: number;
  /** On our own clock: not after the moment at which it is no longer fresh in the store. */
  readonly until: number;
  /** On our own clock: so long it is fresh in the store, be it kept here or not. */
  readonly freshHere: number;
  readonly #loadTime: number;

  constructor(answer: Answer, freshUntil: number, loadTime: number, until: number, freshHere: number) {
    this.answer = answer;
    this.#shared = answer.for('none');
    this.freshUntil = freshUntil;
    this.until = until;
    this.freshHere = freshHere;
    this.#loadTime = loadTime;
  }

  for(isolate: Isolation): unknown {
    return isolate === 'none' ? this.#shared : this.answer.for(isolate);
  }

  /** As `isDueEarly`, by our own clock. */
  isDueEarly(now: number, beta: number, random: Random): boolean {
    return isDueEarly({ answer: this.answer, freshUntil: this.until, loadTime: this.#loadTime }, now, beta, random);
  }
}

/**
 * Values of the store, in this process. None outlives its freshness in the store, or a change that this process has made or
 * was told of; when it might not be told, there are none.
 */
export class NearCache {
  readonly #clock: Clock;
  readonly #ttl: number;
  readonly #entries: LRUCache<string, NearEntry>;
  /** Counts the changes that were told, and the moments from which on earlier reads are worth nothing. */
  #count = 0;
  /** The latest change of each key, since the last time that this was cleared. */
  readonly #changes = new Map<string, number>();
  /** What was sent before this is overtaken, whatever its key. */
  #overtaken = 0;
  #now = 0;
  #questionsLeft = 0;
  readonly #ask = () => {
    this.#questionsLeft = 0;
  };
  /** On our own clock: as long as it is certain that changes are told. */
  #trustedUntil = Number.NEGATIVE_INFINITY;

  constructor(store: { onChange(listener: ChangeListener): void }, clock: Clock, { max, maxSize, ttl }: ResolvedNear) {
    this.#clock = clock;
    this.#ttl = ttl;
    const bySize = { maxSize, sizeCalculation: ({ answer }: NearEntry, key: string) => key.length + answer.length };
    this.#entries = new LRUCache({ max, ...(maxSize !== undefined && bySize) });
    store.onChange({
      changed: (key) => this.changed(key),
      listens: (trusted) => {
        this.#trustedUntil = clock.now() + trusted;
      },
      deaf: () => this.clear(),
    });
  }

  /** How many values there are. */
  get size(): number {
    return this.#entries.size;
  }

  get(key: string): NearEntry | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    const now = this.#roughly();
    if (now < entry.until && now < this.#trustedUntil) return entry;
    if (now >= entry.until) this.#entries.delete(key);
    return undefined;
  }

  /**
   * The time, or what it was a few hits ago in this tick of the event loop: to read a clock may cost more than all the rest of
   * a hit, and whoever blocks the event loop is told of no changes either.
   */
  #roughly(): number {
    if (this.#questionsLeft === 0) {
      this.#now = this.#clock.now();
      this.#questionsLeft = QUESTIONS;
      process.nextTick(this.#ask);
    }
    this.#questionsLeft -= 1;
    return this.#now;
  }

  /** To be called when a read is sent; `undefined` when what it finds can't be kept. */
  startRead(): ReadStart | undefined {
    const sentAt = this.#clock.now();
    return sentAt < this.#trustedUntil ? { changes: this.#count, sentAt } : undefined;
  }

  /**
   * Keeps what a read found, unless it was overtaken by a change.
   *
   * @param now the store's time when it read
   */
  keep(key: string, { answer, freshUntil, loadTime }: Aged, now: number, { changes, sentAt }: ReadStart): void {
    if (changes < this.#overtaken || changes < (this.#changes.get(key) ?? 0)) return;
    // Without it nobody knows how long it is fresh: what stored it has no near cache.
    if (freshUntil === undefined) return;
    // Both moments are whole milliseconds, rounded down.
    const fresh = freshUntil - now - 1;
    const left = Math.min(fresh, this.#ttl);
    if (left <= 0) return;
    this.#entries.set(key, new NearEntry(answer, freshUntil, loadTime, sentAt + left, sentAt + fresh));
  }

  /** The key was evicted, expired or set, here or elsewhere, or is about to be. */
  changed(key: string): void {
    this.#count += 1;
    this.#entries.delete(key);
    if (this.#changes.size >= MOST_CHANGES) {
      this.#changes.clear();
      this.#overtaken = this.#count;
    }
    this.#changes.set(key, this.#count);
  }

  /** Changes may have been missed: nothing is kept until it is certain again that they are told. */
  clear(): void {
    this.#trustedUntil = Number.NEGATIVE_INFINITY;
    this.#count += 1;
    this.#overtaken = this.#count;
    this.#changes.clear();
    this.#entries.clear();
  }
}
