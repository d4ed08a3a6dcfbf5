import { type Clock, systemClock } from '../core/clock.js';
import { ExpiringMap } from './expiring-map.js';

/** How a memory server keeps time, and how much it keeps. */
export interface MemoryServerOptions {
  /** Whose time ends leases and entries. Default: this process's. */
  readonly clock?: Clock;
  /** How many entries are kept; the least recently used go first. Default 10,000. */
  readonly maxEntries?: number;
  /** Milliseconds since the epoch, for "fresh until". Default: the wall clock at the start, carried on by `clock`. */
  readonly now?: () => number;
}

/** A lock as it lies in the server: who holds it, and who waits for its end. */
export interface MemoryLock {
  readonly token: string;
  readonly followers: ReadonlySet<string>;
  /** Grows with every lock, of whatever key. */
  readonly fencingToken: number;
}

/** What the last load that wasn't stored came to. */
export interface MemoryOutcome {
  readonly token: string;
  readonly text: string;
}

/**
 * The state that the stores of several "processes" share, in the place of a Redis server. Locks are never dropped to save
 * memory, only entries are: a lock that is lost is a second load.
 */
export class MemoryServer {
  /** @internal */
  readonly entries: ExpiringMap<string>;
  /** @internal */
  readonly locks: ExpiringMap<MemoryLock>;
  /** @internal */
  readonly outcomes: ExpiringMap<MemoryOutcome>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly #listeners = new Map<string, (token: string) => void>();
  readonly #changeListeners = new Map<string, (key: string) => void>();
  #processes = 0;
  #fence = 0;

  constructor({ clock = systemClock, maxEntries = 10_000, now = wallClock(clock) }: MemoryServerOptions = {}) {
    this.entries = new ExpiringMap(clock, maxEntries);
    this.locks = new ExpiringMap(clock);
    this.outcomes = new ExpiringMap(clock);
    this.now = now;
  }

  /** A name that no other store of this server has. */
  nameProcess(): string {
    this.#processes += 1;
    return `memory${this.#processes}`;
  }

  /** Sends what is published to a process to its listener; one a process. */
  subscribe(process: string, listener: (token: string) => void): void {
    this.#listeners.set(process, listener);
  }

  /** Ends that. */
  unsubscribe(process: string): void {
    this.#listeners.delete(process);
    this.#changeListeners.delete(process);
  }

  /** For those with a near cache. */
  subscribeToChanges(process: string, listener: (key: string) => void): void {
    this.#changeListeners.set(process, listener);
  }

  /** Delivers later, as a message over the network is. */
  publishChange(key: string): void {
    for (const process of this.#changeListeners.keys()) {
      queueMicrotask(() => this.#changeListeners.get(process)?.(key));
    }
  }

  /** Delivers later, as a message over the network is. */
  publish(processes: Iterable<string>, token: string): void {
    for (const process of processes) queueMicrotask(() => this.#listeners.get(process)?.(token));
  }

  /** Microseconds since the epoch, but always more than before. */
  nextFencingToken(): number {
    this.#fence = Math.max(this.#fence + 1, Math.floor(this.now() * 1_000));
    return this.#fence;
  }
}

function wallClock(clock: Clock): () => number {
  const start = Date.now() - clock.now();
  return () => start + clock.now();
}
