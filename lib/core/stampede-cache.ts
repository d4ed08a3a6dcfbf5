import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Observable } from 'rxjs';
import { readEntry } from './aged.js';
import type { Answer } from './answer.js';
import { Caller, type Loader } from './caller.js';
import { encodeWith } from './codec.js';
import type { Coordination } from './coordination.js';
import { atMost, untilLanded } from './draining.js';
import { formatEntry } from './entry.js';
import {
  CacheClosedError,
  CacheEvictionError,
  CacheUnavailableError,
  InvalidKeyError,
  InvalidOptionError,
} from './errors.js';
import type { CacheEvent } from './events.js';
import { Flights } from './flights.js';
import type { LoadMany } from './gathering.js';
import { Kept } from './kept.js';
import { LastResort } from './last-resort.js';
import type { LoadLimit } from './limit-loads.js';
import { Lookups } from './lookups.js';
import {
  type Loaded,
  loadMany,
  type ManyCaching,
  type ManyValues,
  type OnKeyError,
  splitOnKeyError,
  type ValuesByKey,
} from './many.js';
import { NearCache, type NearEntry } from './near-cache.js';
import type { ResolvedNear } from './near-options.js';
import type { Caching, SetCaching } from './options.js';
import type { ErrorCodec } from './outcome.js';
import { resolveLoadOptions } from './resolve-load-options.js';
import { type CachePolicy, looksAtAge, needsOwnAnswer, type ResolvedLoadOptions } from './resolved-options.js';
import type { Tower } from './tower.js';
import { freshFor, makeEntry } from './write.js';
import { Writes } from './writes.js';

/** Applications have few different durations; those that compute them are resolved anew for each call from here on. */
const MOST_RESOLVED = 100;
/** So many are sent in one turn of the event loop. */
const MOST_EVICTIONS = 1_000;

/**
 * A cache in which one call loads, however many callers in however many processes ask: get; on a miss take the lock and
 * recheck; load; store and release; whoever asked meanwhile waits and gets the same.
 *
 * Keys are strings; `composeKey` makes one of parts.
 */
export class StampedeCache {
  readonly #tower: Tower;
  readonly #policy: CachePolicy;
  readonly #flights: Flights;
  readonly #lookups: Lookups;
  readonly #writes: Writes;
  readonly #near: NearCache | undefined;
  /** The options of calls that name a duration and nothing else. */
  readonly #resolved = new Map<unknown, ResolvedLoadOptions>();
  /** From now on nothing takes a lock. */
  #closed = false;

  /** @internal The module, or `createStampede`, makes it. */
  constructor(
    coordination: Coordination,
    policy: CachePolicy,
    errorCodec: ErrorCodec,
    loadLimit: LoadLimit,
    near: ResolvedNear | undefined,
  ) {
    const { clock, events } = coordination;
    checkNear(policy.near, near);
    this.#near = near && new NearCache(coordination.store, clock, near);
    this.#policy = policy;
    const kept = new Kept(clock, (key) => coordination.store.partOf(key));
    this.#tower = {
      ...coordination,
      errorCodec,
      lastResort: new LastResort(clock, events, loadLimit),
      loadLimit,
      readEntry: (key, text, caller) => readEntry(events, key, text, (caller?.options ?? policy).codec),
      keep: (key, answer, entry) => kept.keep(key, answer, entry),
      depart: (flight) => this.#flights.depart(flight),
      look: (key, withTime) => this.#lookups.look(key, withTime),
      read: (key, callers) => {
        for (const caller of callers) this.#lookups.read(key, caller.goingRoundAgain());
      },
      lead: (key, callers) => this.#flights.board(key, callers, { is: 'miss' }),
    };
    this.#flights = new Flights(this.#tower);
    this.#lookups = new Lookups(this.#tower, this.#flights, kept, this.#near);
    this.#writes = new Writes(this.#tower, this.#flights, kept, this.#near, policy.lease);
  }

  /**
   * What happens, as it happens. Costs nothing without subscribers; completes when the cache closes.
   *
   * @example cache.events.subscribe((event) => counter.inc({ type: event.type }));
   */
  get events(): Observable<CacheEvent> {
    return this.#tower.events.stream;
  }

  /**
   * The value of the key; when there is none, what the loader makes of it, loaded once for all who ask meanwhile, here and
   * in other processes, and stored for `ttl`.
   *
   * @param loader gets `{ signal }`, which aborts when the value is of no use any more
   * @param options the `ttl` (milliseconds, `'60s'`, or a function of the value), a profile's name, or options
   * @returns the value; shared with other callers unless `isolate` says otherwise, so treat it as read-only
   * @throws whatever the loader throws, as it was thrown
   * @throws RemoteLoadError when the loader of another process, that this call waited for, threw
   * @throws LoadTimeoutError when the load took longer than `maxLoad`
   * @throws CacheWaitTimeoutError when another's load took longer than this call's `wait`, unless `onWaitTimeout` is `'load'`
   * @throws InvalidKeyError, InvalidOptionError for a key or an option that can't be one
   * @example const product = await cache.getOrLoad(`product:${id}`, () => this.products.findOne(id), '60s');
   */
  getOrLoad<T>(key: string, loader: Loader<T>, options: Caching<T>): Promise<T> {
    try {
      if (typeof loader !== 'function')
        throw new InvalidOptionError('loader', loader, 'a function that makes the value');
      return this.getOrLoadResolved(key, loader, this.resolve(options));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** @internal The same for options that were resolved before, as a decorator's are at boot. */
  getOrLoadResolved<T>(key: string, loader: Loader<T>, options: ResolvedLoadOptions): Promise<T> {
    checkKey(key);
    const near = this.#near !== undefined && options.near ? this.#nearHit(key, loader, options) : undefined;
    if (near) return near as Promise<T>;
    const alike = this.#lookups.alike(key, options);
    if (alike) {
      alike.calls += 1;
      alike.isInLoader ||= this.#tower.loadLimit.isInLoader;
      return alike.promise as Promise<T>;
    }
    const caller = new Caller(loader, options, this.#tower.clock.now());
    caller.takesCalls = !needsOwnAnswer(options);
    caller.isInLoader = this.#tower.loadLimit.isInLoader;
    if (!caller.settled) this.#ask(key, caller);
    return caller.promise as Promise<T>;
  }

  #nearHit(key: string, loader: Loader<unknown>, options: ResolvedLoadOptions): Promise<unknown> | undefined {
    const found = this.#nearby(key, options);
    if (!found) return undefined;
    const { clock } = this.#tower;
    if (this.#isDueEarly(found, options))
      this.#flights.refresh(key, new Caller(loader, options, clock.now()), found.freshUntil);
    options.told?.({ is: 'hit', left: found.freshHere - clock.now() });
    return Promise.resolve(found.for(options.isolate));
  }

  /** The same for one of many, who is a caller already. */
  #answerNear(key: string, caller: Caller): boolean {
    const { options } = caller;
    const found = options.near ? this.#nearby(key, options) : undefined;
    if (!found) return false;
    if (this.#isDueEarly(found, options)) this.#flights.refresh(key, caller, found.freshUntil);
    caller.answer(found.answer, { is: 'hit', left: found.freshHere - this.#tower.clock.now() });
    return true;
  }

  #nearby(key: string, options: ResolvedLoadOptions): NearEntry | undefined {
    const found = this.#near?.get(key);
    if (!found || options.signal?.aborted || options.reload) return undefined;
    const { events } = this.#tower;
    if (events.observed) events.emit({ type: 'near-hit', key });
    return found;
  }

  #isDueEarly(found: NearEntry, { earlyRefresh }: ResolvedLoadOptions): boolean {
    return earlyRefresh > 0 && found.isDueEarly(this.#tower.clock.now(), earlyRefresh, this.#tower.random);
  }

  /**
   * The values of many keys. Each is found, loaded or waited for as `getOrLoad` does, under a lock of its own; but they are
   * read together, and those that this process has to load are loaded together, by one `loadMany`. It is called once more for
   * keys that become this process's later, as when another one dies. More than 1,000 keys are done a thousand at a time.
   *
   * @param keys in any number and order; of equal ones one is asked for
   * @param load gets the keys to load and `{ signal }`, which aborts when none of their values is of use any more; gives an
   *   array with a value for each in their order, or a `Map` by key in which one that has no value is missing (that is stored
   *   as `undefined`). An `Error` in the place of a value is the failure of that key's load alone.
   * @param options as for `getOrLoad`, for each key; and `errors`
   * @returns the values, in the order of the keys
   * @throws what `getOrLoad` throws, for the first key that fails; the others of its thousand are loaded and stored all the
   *   same, later ones not asked for. With `errors: 'return'` the `Error` stands in the value's place instead
   * @throws InvalidLoadResultError when what `loadMany` returned can't be matched with the keys
   * @example
   * const keys = ids.map((id) => `product:${id}`);
   * const products = await cache.getOrLoadMany(keys, (missing) => this.products.findByKeys(missing), '60s');
   */
  getOrLoadMany<T, E extends OnKeyError = 'throw'>(
    keys: readonly string[],
    load: LoadMany<ManyValues<T>>,
    options: ManyCaching<T, E>,
  ): Promise<Loaded<T, E>[]>;
  getOrLoadMany<T, E extends OnKeyError = 'throw'>(
    keys: readonly string[],
    load: LoadMany<ValuesByKey<T>>,
    options: ManyCaching<T | undefined, E>,
  ): Promise<Loaded<T | undefined, E>[]>;
  async getOrLoadMany<T>(
    keys: readonly string[],
    load: LoadMany<unknown>,
    options: ManyCaching<T>,
  ): Promise<unknown[]> {
    if (typeof load !== 'function') throw new InvalidOptionError('loadMany', load, 'a function that makes the values');
    const { errors, caching } = splitOnKeyError(options);
    return this.getOrLoadManyResolved(keys, load, this.resolve(caching), errors);
  }

  /** @internal The same for options that were resolved before. */
  async getOrLoadManyResolved(
    keys: readonly string[],
    loadKeys: LoadMany<unknown>,
    options: ResolvedLoadOptions,
    errors: OnKeyError,
  ): Promise<unknown[]> {
    if (!Array.isArray(keys)) throw new InvalidOptionError('keys', keys, 'an array of keys');
    for (const key of keys) checkKey(key);
    const { clock, loadLimit } = this.#tower;
    const ask = (key: string, caller: Caller) => this.#answerNear(key, caller) || this.#ask(key, caller);
    const together = (askAll: () => void) => this.#lookups.together(askAll);
    return loadMany(keys, { loadKeys, clock, loadLimit, options, errors, ask, together });
  }

  /** @internal Options over this cache's defaults. */
  resolve<T>(options: Caching<T>): ResolvedLoadOptions {
    const known = this.#resolved.get(options);
    if (known) return known;
    const resolved = resolveLoadOptions(options, this.#policy);
    checkNear(resolved.near, this.#near);
    const isDuration = typeof options === 'number' || typeof options === 'string';
    if (isDuration && this.#resolved.size < MOST_RESOLVED) this.#resolved.set(options, resolved);
    return resolved;
  }

  /**
   * The value that is stored, if it is fresh. `undefined` for a miss and for a stored `undefined`, which `has` tells apart,
   * and when the store does not answer. Read with the cache's own codec, whatever the call that stored it had.
   */
  async get<T = unknown>(key: string): Promise<T | undefined> {
    const found = await this.#peek(key);
    return found?.for(this.#policy.isolate) as T | undefined;
  }

  /** Whether a fresh value is stored; false when the store does not answer. */
  async has(key: string): Promise<boolean> {
    return (await this.#peek(key)) !== undefined;
  }

  /**
   * Stores a value. A load of the key that is under way will not overwrite it. Of two at once the first to begin never
   * wins; if its write comes last, nothing is stored, so that nothing old is.
   *
   * @param options the `ttl`, a profile's name, or options; a `ttl` of 0 evicts, and fails as `evict` does
   * @throws TypeError (or what the codec throws) when the value can't be encoded
   * @throws CacheUnavailableError when the store did not confirm it; a later read says whether it is there
   */
  async set<T>(key: string, value: T, options: SetCaching<T>): Promise<void> {
    checkKey(key);
    const resolved = resolveLoadOptions(options, this.#policy);
    const ttl = freshFor(value, resolved, this.#tower.random);
    if (ttl === 0) return this.evict(key);
    const entry = makeEntry(formatEntry(encodeWith(resolved.codec, value), 0), ttl, resolved);
    if (this.#closed) throw new CacheUnavailableError('set', { cause: new CacheClosedError() });
    await this.#writes.set(key, entry, ttl);
  }

  /**
   * Removes what is stored. Calls that start after this resolved, in any process, get what is loaded after this was called;
   * a load that is under way is not aborted, but its value is not stored.
   *
   * @param keys a key, or several; an array is several keys, never the parts of one: `composeKey` makes a key of parts
   * @throws CacheEvictionError naming the keys whose eviction the store did not acknowledge
   */
  async evict(keys: string | readonly string[]): Promise<void> {
    const all = typeof keys === 'string' ? [keys] : keys;
    if (!Array.isArray(all)) throw new InvalidKeyError(keys);
    for (const key of all) checkKey(key);
    const failed: string[] = [];
    let cause: unknown;
    const evictions: Promise<void>[] = [];
    for (const key of new Set<string>(all)) {
      // Replies are read between: else the first would be read when the last is sent, which is after its deadline.
      if (evictions.length > 0 && evictions.length % MOST_EVICTIONS === 0) await nextTurn();
      const evicted = this.#writes.evict(key, 'evict').catch((error) => {
        failed.push(key);
        cause = error;
      });
      evictions.push(evicted);
    }
    await Promise.all(evictions);
    if (failed.length > 0) throw new CacheEvictionError(failed, { cause });
  }

  /**
   * Marks what is stored as stale, for those who would rather serve an old value than none; a miss for everybody else. As
   * with `evict`, a load that is under way is not stored.
   *
   * @throws CacheUnavailableError when the store did not acknowledge it
   */
  async expire(key: string): Promise<void> {
    checkKey(key);
    try {
      await this.#writes.evict(key, 'expire');
    } catch (cause) {
      throw new CacheUnavailableError('expire', { cause });
    }
  }

  /** @internal Waits for the loads that run now, at most so many milliseconds. Aborts nothing. */
  async settle(patience: number): Promise<void> {
    await atMost(this.#tower.clock, patience, Promise.all(this.#flights.underWay));
  }

  /**
   * @internal Waits for all that is under way, at most `drainTimeout` milliseconds; then aborts the loads that still run, and
   * releases their locks. From then on no call takes a lock: loaders answer.
   */
  async drain(drainTimeout: number): Promise<void> {
    await untilLanded(this.#tower.clock, drainTimeout, () => this.#underWay);
    this.#closed = true;
    this.#tower.lastResort.close();
    const underWay = this.#underWay;
    this.#lookups.close();
    this.#flights.close();
    await Promise.allSettled(underWay);
  }

  /** What may take off, or has, and what has a lock besides. */
  get #underWay(): Promise<void>[] {
    return [...this.#lookups.underWay, ...this.#flights.underWay, ...this.#writes.underWay];
  }

  #ask(key: string, caller: Caller): void {
    const flight = this.#flights.of(key);
    // Who may get an old value looks for it first, even while others load.
    if (flight && !looksAtAge(caller.options) && !flight.isBackground) flight.join([caller]);
    else this.#lookups.read(key, caller, { mayLag: !caller.options.near });
  }

  #peek(key: string): Promise<Answer | undefined> {
    checkKey(key);
    return this.#lookups.peek(key);
  }
}

function checkNear(wanted: boolean, there: object | undefined): void {
  if (!wanted || there) return;
  throw new InvalidOptionError('near', true, 'false, unless the cache has a near cache: near: { max: 10_000 }');
}

function checkKey(key: unknown): void {
  if (typeof key !== 'string' || key === '') throw new InvalidKeyError(key);
}
