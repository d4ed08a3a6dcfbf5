import { AsyncResource } from 'node:async_hooks';
import type { LoadContext } from './caller.js';
import type { Clock, Timer } from './clock.js';
import { isError } from './is-error.js';
import type { LoadLimit, Place } from './limit-loads.js';
import { LoadSignal } from './load-signal.js';
import { valuesOf } from './many-values.js';

/** Loads many at once: it gets the keys that this process has to load, each once, at most a thousand at a time. */
export type LoadMany<Values> = (keys: readonly string[], context: LoadContext) => Values | PromiseLike<Values>;

export interface GatheringParts {
  readonly loadKeys: LoadMany<unknown>;
  readonly clock: Clock;
  readonly loadLimit: LoadLimit;
}

/**
 * For so many milliseconds keys are gathered that come to be this process's later than the others: when a process dies that
 * has led many, their leases don't end in one moment.
 */
const LATER = 10;

/**
 * The keys of one call that this process has to load. Each has a flight of its own, whose loader hands the key in here; when
 * it is known of every key whether that will happen, one `loadKeys` loads all of them. It waits for no load of others, so that
 * two processes that wait for each other's keys both get on.
 */
export class Gathering {
  readonly #parts: GatheringParts;
  readonly #undecided = new Set<string>();
  #batch: Batch | undefined;
  #later: Timer | undefined;
  #background: Gathering | undefined;

  constructor(parts: GatheringParts) {
    this.#parts = parts;
  }

  /** For what nobody waits for: no caller should, and it may run in nobody's context. */
  get background(): Gathering {
    this.#background ??= new Gathering(this.#parts);
    return this.#background;
  }

  /** This key may be handed in. */
  expect(key: string): void {
    this.#undecided.add(key);
  }

  /** This key is handed in, or needn't be: it is answered, or somebody else loads it. */
  decided(key: string): void {
    if (this.#undecided.delete(key) && this.#undecided.size === 0) this.#load();
  }

  /** What the loader of each key does. */
  load(key: string, signal: LoadSignal): Promise<unknown> {
    // By its flight, and by the last resort of a wait that is over.
    if (this.#batch?.has(key)) this.#load();
    this.#batch ??= new Batch();
    const value = this.#batch.add(key, signal);
    if (this.#undecided.size > 0) this.decided(key);
    else this.#later ??= this.#parts.clock.after(LATER, () => this.#load());
    return value;
  }

  #load(): void {
    this.#later?.clear();
    this.#later = undefined;
    void this.#batch?.load(this.#parts);
    this.#batch = undefined;
  }
}

interface Pending {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** What one `loadKeys` loads: the keys that are still wanted when its place is there. */
class Batch {
  readonly #pending = new Map<string, Pending>();
  readonly #signal = new LoadSignal();
  #place: Place | undefined;
  /** The AsyncLocalStorage context of the call, which that of each of its loaders is. */
  readonly #context = new AsyncResource('StampedeCacheBatch');

  has(key: string): boolean {
    return this.#pending.has(key);
  }

  add(key: string, signal: LoadSignal): Promise<unknown> {
    const giveUp = (reason: unknown) => this.#giveUp(key, reason);
    signal.onAbort = giveUp;
    const hurry = () => this.#hurry();
    signal.onHurry = hurry;
    if (signal.isUrgent) hurry();
    return new Promise((resolve, reject) => this.#pending.set(key, { resolve, reject }));
  }

  async load({ loadKeys, loadLimit }: GatheringParts): Promise<void> {
    let keys: string[] = [];
    const load = async () => {
      keys = [...this.#pending.keys()];
      return keys.length === 0 ? [] : loadKeys([...keys], this.#signal);
    };
    try {
      const place = this.#context.runInAsyncScope(() => loadLimit.take(load));
      this.#place = place;
      if (this.#signal.isUrgent) place.hurry();
      const result = await place.result;
      const values = valuesOf(result, keys, { loader: 'loadMany', ids: 'keys' });
      for (const [i, key] of keys.entries()) this.#settle(key, values[i]);
    } catch (error) {
      for (const { reject } of this.#pending.values()) reject(error);
    }
  }

  /** A loader waits for one of its keys. */
  #hurry(): void {
    this.#signal.hurry();
    this.#place?.hurry();
  }

  #settle(key: string, value: unknown): void {
    if (isError(value)) this.#pending.get(key)?.reject(value);
    else this.#pending.get(key)?.resolve(value);
  }

  /** This key's value is of no use any more; when that is so for all of them, the load isn't either. */
  #giveUp(key: string, reason: unknown): void {
    this.#pending.delete(key);
    if (this.#pending.size === 0) this.#signal.abort(reason);
  }
}
