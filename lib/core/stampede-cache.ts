import { AsyncResource } from 'node:async_hooks';
import { LRUCache } from 'lru-cache';
import type { Observable } from 'rxjs';
import { type Aged, isDueEarly, readAged, stalenessOf } from './aged.js';
import type { Answer } from './answer.js';
import { Caller, type Loader } from './caller.js';
import { encodeWith } from './codec.js';
import type { Coordination } from './coordination.js';
import { formatEntry } from './entry.js';
import {
  CacheClosedError,
  CacheEvictionError,
  CacheUnavailableError,
  EvictionPendingError,
  InvalidKeyError,
  InvalidOptionError,
} from './errors.js';
import type { CacheEvent } from './events.js';
import { Flight, type Start } from './flight.js';
import { LastResort } from './last-resort.js';
import type { LimitLoads } from './load.js';
import {
  type LoadOptions,
  looksAtAge,
  type ResolvedLoadOptions,
  type ResolvedPolicy,
  resolveLoadOptions,
  type SetOptions,
  type Ttl,
} from './options.js';
import type { ErrorCodec } from './outcome.js';
import type { Eviction } from './pending-evictions.js';
import { type Found, Reads } from './reads.js';
import { answerStale } from './settling.js';
import type { StoredEntry } from './store.js';
import type { Tower } from './tower.js';
import { freshFor, makeEntry } from './write.js';

/** The longest that a value loaded while the store is away is kept, in milliseconds, and how many are. */
const MOST_KEPT = 1_000;
const MOST_KEPT_KEYS = 10_000;

/** Who only looks: `get` and `has`. */
interface Peek {
  look(found: Answer | undefined): void;
}

/**
 * A cache in which one call loads, however many callers in however many processes ask: get; on a miss take the lock and
 * recheck; load; store and release; whoever asked meanwhile waits and gets the same.
 *
 * Keys are strings; `composeKey` makes one of parts.
 */
export class StampedeCache {
  readonly #tower: Tower;
  readonly #policy: ResolvedPolicy;
  readonly #reads: Reads<Caller | Peek>;
  /** The flight that a call of this key joins. */
  readonly #flights = new Map<string, Flight>();
  /** Every flight that isn't over: those above, and those whose lease has ended. */
  readonly #airborne = new Map<Flight, Promise<void>>();
  /** Each `set`, `evict` and `expire` that isn't over: between its two steps a `set` has the lock. */
  readonly #writes = new Set<Promise<void>>();
  /** Some calls have windows and others none: those, too, need the store's time for what the former have stored. */
  #needsTime = false;
  /** What was loaded while the store is away. */
  readonly #kept: LRUCache<string, Answer>;
  /** The AsyncLocalStorage context of background loads: that of whoever makes the cache, which is no request. */
  readonly #nobody = new AsyncResource('StampedeCacheBackground');
  /** From now on nothing takes a lock. */
  #closed = false;

  constructor(coordination: Coordination, policy: ResolvedPolicy, errorCodec: ErrorCodec, limitLoads: LimitLoads) {
    this.#policy = policy;
    this.#kept = new LRUCache({ max: MOST_KEPT_KEYS, ttl: MOST_KEPT, ttlResolution: 0, perf: coordination.clock });
    this.#reads = new Reads(
      (keys, withTime) => coordination.store.read(keys, withTime),
      (key, readers, found) => this.#deliver(key, readers, found),
    );
    this.#tower = {
      ...coordination,
      errorCodec,
      lastResort: new LastResort(coordination.clock, coordination.events, limitLoads),
      limitLoads,
      readEntry: (key, text, caller) => this.#readEntry(key, text, caller?.options ?? policy),
      keep: (key, answer, { px, freshFor = px }) => this.#kept.set(key, answer, { ttl: Math.min(freshFor, MOST_KEPT) }),
      depart: (flight) => this.#depart(flight),
      read: (key, callers) =>
        this.#reads.add(key, callers, this.#needsTime || callers.some(({ options }) => looksAtAge(options))),
      lead: (key, callers) => this.#board(key, callers, { is: 'miss' }),
    };
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
   * @param options the `ttl` (milliseconds, `'60s'`, or a function of the value), or options with it
   * @returns the value; shared with other callers unless `isolate` says otherwise, so treat it as read-only
   * @throws whatever the loader throws, as it was thrown
   * @throws RemoteLoadError when the loader of another process, that this call waited for, threw
   * @throws LoadTimeoutError when the load took longer than `maxLoad`
   * @throws CacheWaitTimeoutError when another's load took longer than this call's `wait`, unless `onWaitTimeout` is `'load'`
   * @throws InvalidKeyError, InvalidOptionError for a key or an option that can't be one
   * @example const product = await cache.getOrLoad(`product:${id}`, () => this.products.findOne(id), '60s');
   */
  getOrLoad<T>(key: string, loader: Loader<T>, options: Ttl<T> | LoadOptions<T>): Promise<T> {
    try {
      if (typeof loader !== 'function')
        throw new InvalidOptionError('loader', loader, 'a function that makes the value');
      return this.getOrLoadResolved(key, loader, resolveLoadOptions(options, this.#policy));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** @internal The same for options that were resolved before, as a decorator's are at boot. */
  getOrLoadResolved<T>(key: string, loader: Loader<T>, options: ResolvedLoadOptions): Promise<T> {
    checkKey(key);
    const caller = new Caller(loader, options, this.#tower.clock.now());
    const flight = this.#flights.get(key);
    const readsAnyway = looksAtAge(options);
    // Who may get an old value looks for it first, even while others load.
    if (flight && !readsAnyway && !flight.isBackground) flight.join([caller]);
    else this.#reads.add(key, [caller], readsAnyway || this.#needsTime);
    return caller.promise as Promise<T>;
  }

  /** @internal Options over this cache's defaults. */
  resolve<T>(options: Ttl<T> | LoadOptions<T>): ResolvedLoadOptions {
    return resolveLoadOptions(options, this.#policy);
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
   * @param options the `ttl`, or options with it; a `ttl` of 0 evicts, and fails as `evict` does
   * @throws TypeError (or what the codec throws) when the value can't be encoded
   * @throws CacheUnavailableError when the store did not confirm it; a later read says whether it is there
   */
  async set<T>(key: string, value: T, options: Ttl<T> | SetOptions<T>): Promise<void> {
    checkKey(key);
    const resolved = resolveLoadOptions(options, this.#policy);
    const ttl = freshFor(value, resolved, this.#tower.random);
    if (ttl === 0) return this.evict(key);
    const entry = makeEntry(formatEntry(encodeWith(resolved.codec, value), 0), ttl, resolved);
    if (this.#closed) throw new CacheUnavailableError('set', { cause: new CacheClosedError() });
    await this.#write(key, this.#set(key, entry));
    const { events } = this.#tower;
    if (events.observed) events.emit({ type: 'set', key, ttl });
  }

  /**
   * Two steps, so that a write that is delayed can't land on top of a newer one: only the claim's own token may end. If that
   * is refused, who came between may never write, and what was there before must not stay.
   */
  async #set(key: string, entry: StoredEntry): Promise<void> {
    const token = this.#tower.newToken();
    const { store } = this.#tower;
    const replaced = this.#flights.get(key)?.replacing();
    try {
      await store.claim(key, token, this.#policy.lease);
      replaced?.(true);
      const end = await store.end({ kind: 'cache', key, token, entry });
      if (end.is === 'refused') await store.evict(key, 'evict');
      else if (!end.stored) throw new Error(end.error);
    } catch (cause) {
      replaced?.(false);
      throw new CacheUnavailableError('set', { cause });
    }
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
    const evictions = [...new Set(all)].map((key) =>
      this.#evict(key, 'evict').catch((error) => {
        failed.push(key);
        cause = error;
      }),
    );
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
      await this.#evict(key, 'expire');
    } catch (cause) {
      throw new CacheUnavailableError('expire', { cause });
    }
  }

  /** @internal Waits for the loads that run now, at most so many milliseconds. Aborts nothing. */
  async settle(patience: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.#tower.clock.after(patience, resolve);
      void Promise.all(this.#airborne.values()).then(() => {
        timer.clear();
        resolve();
      });
    });
  }

  /**
   * @internal Waits for all that is under way, at most `drainTimeout` milliseconds; then aborts the loads that still run, and
   * releases their locks. From then on no call takes a lock: loaders answer.
   */
  async drain(drainTimeout: number): Promise<void> {
    const { clock, lastResort } = this.#tower;
    let timeIsUp = false;
    const stop = new Promise<void>((resolve) => {
      const timer = clock.after(drainTimeout, () => {
        timeIsUp = true;
        resolve();
      });
      void this.#landed(() => timeIsUp).then(() => {
        timer.clear();
        resolve();
      });
    });
    await stop;
    this.#closed = true;
    lastResort.close();
    const underWay = this.#underWay;
    for (const flight of this.#airborne.keys()) flight.close();
    await Promise.allSettled(underWay);
  }

  /** Resolves when nothing is under way, what begins meanwhile included. */
  async #landed(giveUp: () => boolean): Promise<void> {
    for (let underWay = this.#underWay; underWay.length > 0 && !giveUp(); underWay = this.#underWay) {
      await Promise.allSettled(underWay);
    }
  }

  /** What may take off, or has, and what has a lock besides. */
  get #underWay(): Promise<void>[] {
    return [...this.#reads.underWay, ...this.#airborne.values(), ...this.#writes];
  }

  /** What a read found goes to all who had asked; those for whom it isn't good enough board a flight. */
  #deliver(key: string, readers: readonly (Caller | Peek)[], found: Found): void {
    const callers = readers.filter((reader) => reader instanceof Caller);
    const peeks = readers.filter((reader): reader is Peek => !(reader instanceof Caller));
    if ('storeAway' in found) {
      for (const peek of peeks) peek.look(undefined);
      if (callers.length > 0) this.#doWithout(key, callers, found.storeAway);
      return;
    }
    const { text, now } = found;
    if (text instanceof EvictionPendingError) {
      for (const peek of peeks) peek.look(undefined);
      if (callers.length > 0) this.#doWithout(key, callers, text);
      return;
    }
    if (this.#kept.size > 0) this.#kept.clear();
    const aged = typeof text === 'string' ? this.#readEntry(key, text, callers[0]?.options ?? this.#policy) : undefined;
    const staleness = aged && stalenessOf(aged, now);
    if (staleness === 'unknown') {
      this.#needsTime = true;
      this.#reads.add(key, readers, true);
      return;
    }
    for (const peek of peeks) peek.look(staleness === 'fresh' ? aged?.answer : undefined);
    if (callers.length === 0) return;
    if (aged && staleness === 'fresh') this.#hit(key, callers, aged, now);
    else if (aged && typeof staleness === 'number') this.#stale(key, callers, aged.answer, staleness);
    else this.#miss(key, callers, { is: 'miss', unreadable: typeof text === 'string' && !aged ? text : undefined });
  }

  #hit(key: string, callers: readonly Caller[], aged: Aged, now: number | undefined): void {
    const { events, random } = this.#tower;
    for (const caller of callers) {
      if (events.observed) events.emit({ type: 'hit', key });
      caller.answer(aged.answer);
    }
    if (now === undefined) return;
    const eager = callers.find(
      ({ options }) => options.earlyRefresh > 0 && isDueEarly(aged, now, options.earlyRefresh, random),
    );
    if (eager) this.#refresh(key, eager, aged.freshUntil);
  }

  /** There is something old: whoever may have that gets it at once, or keeps it at hand. */
  #stale(key: string, callers: readonly Caller[], answer: Answer, staleness: number): void {
    const { events } = this.#tower;
    const boarding: Caller[] = [];
    let answered: Caller | undefined;
    for (const caller of callers) {
      const { staleWhileRevalidate, staleIfError } = caller.options;
      if (staleness < Math.max(staleWhileRevalidate, staleIfError)) caller.stale = answer;
      if (staleness >= staleWhileRevalidate) boarding.push(caller);
      else if (answerStale(events, key, caller, 'while-revalidate')) answered = caller;
    }
    if (boarding.length > 0) this.#miss(key, boarding, { is: 'miss' });
    else if (answered) this.#refresh(key, answered);
  }

  #miss(key: string, callers: readonly Caller[], start: Start): void {
    const { events } = this.#tower;
    if (events.observed) for (const _ of callers) events.emit({ type: 'miss', key });
    this.#board(key, callers, start);
  }

  /** The store is away: what was loaded here within the last second will do; otherwise loaders answer. */
  #doWithout(key: string, callers: readonly Caller[], error: unknown): void {
    const kept = this.#closed ? undefined : this.#kept.get(key);
    if (!kept) this.#miss(key, callers, { is: 'store away', error });
    else this.#answerKept(key, callers, kept);
  }

  #answerKept(key: string, callers: readonly Caller[], kept: Answer): void {
    const { events } = this.#tower;
    for (const caller of callers) {
      if (events.observed) events.emit({ type: 'kept', key });
      caller.answer(kept);
    }
  }

  /**
   * One load in the background, unless one is under way here or in another process.
   *
   * @param refreshing the moment until which the entry is fresh, if it is to be replaced before that
   */
  #refresh(key: string, caller: Caller, refreshing?: number): void {
    if (this.#flights.has(key)) return;
    this.#takeOff(key, [caller.inBackground(this.#nobody, this.#tower.clock.now())], { is: 'miss', refreshing });
  }

  /** The callers join the flight of their key, or a new one. */
  #board(key: string, callers: readonly Caller[], start: Start): void {
    const flying = this.#flights.get(key);
    if (flying) flying.join(callers);
    else this.#takeOff(key, callers, start);
  }

  #takeOff(key: string, callers: readonly Caller[], start: Start): void {
    const flight = new Flight(key, this.#tower);
    this.#flights.set(key, flight);
    flight.join(callers);
    const landing = flight
      .fly(this.#closed ? { is: 'store away', error: new CacheClosedError() } : start)
      .catch((error) => flight.close(error))
      .finally(() => {
        this.#airborne.delete(flight);
        this.#depart(flight);
      });
    this.#airborne.set(flight, landing);
  }

  #depart(flight: Flight): void {
    if (this.#flights.get(flight.key) === flight) this.#flights.delete(flight.key);
  }

  #readEntry(key: string, text: string, { codec }: Pick<ResolvedPolicy, 'codec'>): Aged | undefined {
    try {
      return readAged(text, codec);
    } catch (error) {
      if (this.#tower.events.observed) this.#tower.events.emit({ type: 'unreadable', key, error });
      return undefined;
    }
  }

  #peek(key: string): Promise<Answer | undefined> {
    checkKey(key);
    return new Promise((look) => this.#reads.add(key, [{ look }], true));
  }

  /** What is kept of this key goes, and also what a load that is under way keeps until the write is over. */
  async #write(key: string, write: Promise<void>): Promise<void> {
    this.#kept.delete(key);
    this.#writes.add(write);
    try {
      await write;
    } finally {
      this.#writes.delete(write);
      this.#kept.delete(key);
    }
  }

  async #evict(key: string, by: Eviction): Promise<void> {
    const { store, events } = this.#tower;
    const replaced = this.#flights.get(key)?.replacing();
    try {
      await this.#write(key, store.evict(key, by));
    } catch (error) {
      replaced?.(false);
      throw error;
    }
    replaced?.(true);
    if (events.observed) events.emit({ type: by, key });
  }
}

function checkKey(key: unknown): void {
  if (typeof key !== 'string' || key === '') throw new InvalidKeyError(key);
}
