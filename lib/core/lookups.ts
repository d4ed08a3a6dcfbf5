import { type Aged, freshnessLeft, isDueEarly, stalenessOf } from './aged.js';
import type { Answer } from './answer.js';
import { Caller } from './caller.js';
import { EvictionPendingError } from './errors.js';
import type { Start } from './flight.js';
import type { Flights } from './flights.js';
import type { Kept } from './kept.js';
import type { NearCache, ReadStart } from './near-cache.js';
import { type Found, MOST_KEYS, Reads } from './reads.js';
import { needsAge, type ResolvedLoadOptions } from './resolved-options.js';
import { answerStale } from './settling.js';
import type { Tower } from './tower.js';

/** Who only looks: `get` and `has`. */
export interface Peek {
  look(found: Answer | undefined): void;
}

type Read = Exclude<Found<ReadStart | undefined>, { readonly storeAway: unknown }>;

/** Reads keys, and gives what was found to all who had asked; those for whom it isn't good enough board a flight. */
export class Lookups {
  readonly #tower: Tower;
  readonly #flights: Flights;
  readonly #kept: Kept;
  readonly #near: NearCache | undefined;
  readonly #reads: Reads<Caller | Peek, ReadStart | undefined>;
  readonly #looks: Reads<(found: Found<undefined>) => void>;
  /**
   * What is stored says until when it is fresh, if there is a near cache, or other calls have windows: so those without need the
   * store's time, too.
   */
  #needsTime: boolean;
  #closed = false;

  constructor(tower: Tower, flights: Flights, kept: Kept, near: NearCache | undefined) {
    this.#tower = tower;
    this.#flights = flights;
    this.#kept = kept;
    const read = (keys: readonly string[], withTime: boolean, mayLag: boolean) =>
      tower.store.read(keys, withTime, mayLag);
    const partOf = (key: string) => tower.store.partOf(key);
    this.#near = near;
    this.#needsTime = near !== undefined;
    this.#reads = new Reads(
      read,
      partOf,
      (key, readers, found) => this.#deliver(key, readers, found),
      () => near?.startRead(),
    );
    this.#looks = new Reads(
      read,
      partOf,
      (_key, looking, found) => {
        for (const look of looking) look(found);
      },
      () => undefined,
      MOST_KEYS,
    );
  }

  /** Those whose callers have not been told yet. */
  get underWay(): Iterable<Promise<void>> {
    return this.#reads.underWay;
  }

  /** Who has asked for this key in this tick, by the very same options, so that its answer is one to whoever asks now. */
  alike(key: string, options: ResolvedLoadOptions): Caller | undefined {
    const reader = this.#reads.waitingFor(key)?.[0];
    return reader instanceof Caller && reader.takesCalls && reader.options === options ? reader : undefined;
  }

  /** `mayLag`: a replica's answer will do. */
  read(key: string, caller: Caller, { mayLag = false } = {}): void {
    this.#reads.add(key, caller, this.#needsTime || needsAge(caller.options), mayLag);
  }

  /** What is asked for meanwhile is read together, however much it is. */
  together(ask: () => void): void {
    this.#reads.together(ask);
  }

  peek(key: string): Promise<Answer | undefined> {
    return new Promise((look) => this.#reads.add(key, { look }, true));
  }

  /** For a flight, which knows what to do with it. Many may be woken in one tick, by the end of a load of many keys. */
  look(key: string, withTime: boolean): Promise<Found<undefined>> {
    return new Promise((found) => this.#looks.add(key, found, withTime));
  }

  /** From now on nothing that was kept is answered. */
  close(): void {
    this.#closed = true;
  }

  #deliver(key: string, readers: readonly (Caller | Peek)[], found: Found<ReadStart | undefined>): void {
    const error = 'storeAway' in found ? found.storeAway : found.text;
    if ('storeAway' in found || error instanceof EvictionPendingError) this.#doWithout(key, callersOf(readers), error);
    else this.#find(key, readers, found);
  }

  #find(key: string, readers: readonly (Caller | Peek)[], { text, now, start }: Read): void {
    this.#kept.storeAnswered(key);
    const aged = typeof text === 'string' ? this.#tower.readEntry(key, text, firstCaller(readers)) : undefined;
    const staleness = aged && stalenessOf(aged, now);
    if (aged && staleness === 'fresh') {
      if (start && now !== undefined && readers.some(wantsNear)) this.#near?.keep(key, aged, now, start);
      this.#hit(key, readers, aged, now);
    } else if (staleness === 'unknown') {
      this.#needsTime = true;
      for (const reader of readers)
        this.#reads.add(key, reader instanceof Caller ? reader.goingRoundAgain() : reader, true);
    } else if (aged && typeof staleness === 'number') {
      this.#stale(key, callersOf(readers), aged.answer, staleness);
    } else {
      this.#miss(key, callersOf(readers), { is: 'miss', unreadable: typeof text === 'string' ? text : undefined });
    }
  }

  #hit(key: string, readers: readonly (Caller | Peek)[], aged: Aged, now: number | undefined): void {
    const { events, random } = this.#tower;
    const left = freshnessLeft(aged, now);
    const reloading: Caller[] = [];
    let eager: Caller | undefined;
    for (const reader of readers) {
      if (!(reader instanceof Caller)) {
        reader.look(aged.answer);
        continue;
      }
      if (reader.settled) continue;
      if (reader.options.reload) {
        reloading.push(reader);
        continue;
      }
      if (events.observed) events.emit({ type: 'hit', key }, reader.calls);
      reader.answer(aged.answer, { is: 'hit', left });
      const beta = reader.options.earlyRefresh;
      if (!eager && beta > 0 && now !== undefined && isDueEarly(aged, now, beta, random, reader.calls)) eager = reader;
    }
    if (reloading.length > 0) this.#flights.board(key, reloading, { is: 'miss', refreshing: aged.freshUntil });
    else if (eager) this.#flights.refresh(key, eager, aged.freshUntil);
  }

  /** There is something old: whoever may have that gets it at once, or keeps it at hand. */
  #stale(key: string, callers: readonly Caller[], answer: Answer, staleness: number): void {
    const { events } = this.#tower;
    const boarding: Caller[] = [];
    let answered: Caller | undefined;
    for (const caller of callers) {
      const { staleWhileRevalidate, staleIfError, reload } = caller.options;
      if (staleness < Math.max(staleWhileRevalidate, staleIfError)) {
        caller.stale = answer;
        caller.staleSince = staleness;
      }
      if (staleness >= staleWhileRevalidate || reload) boarding.push(caller);
      else if (answerStale(events, key, caller, 'while-revalidate')) answered = caller;
    }
    if (boarding.length > 0) this.#miss(key, boarding, { is: 'miss' });
    else if (answered) this.#flights.refresh(key, answered);
  }

  #miss(key: string, callers: readonly Caller[], start: Start): void {
    if (callers.length === 0) return;
    const { events } = this.#tower;
    if (events.observed)
      for (const { calls, settled } of callers) if (!settled) events.emit({ type: 'miss', key }, calls);
    this.#flights.board(key, callers, start);
  }

  /** The store is away: what was loaded here within the last second will do; otherwise loaders answer. */
  #doWithout(key: string, callers: readonly Caller[], error: unknown): void {
    const kept = this.#closed ? undefined : this.#kept.of(key);
    if (!kept) this.#miss(key, callers, { is: 'store away', error });
    else this.#answerKept(key, callers, kept);
  }

  #answerKept(key: string, callers: readonly Caller[], kept: Answer): void {
    const { events } = this.#tower;
    for (const caller of callers) {
      if (events.observed && !caller.settled) events.emit({ type: 'kept', key }, caller.calls);
      caller.answer(kept, { is: 'kept' });
    }
  }
}

function wantsNear(reader: Caller | Peek): boolean {
  return reader instanceof Caller && reader.options.near;
}

function firstCaller(readers: readonly (Caller | Peek)[]): Caller | undefined {
  return readers.find((reader) => reader instanceof Caller);
}

/** Those of them who want a value even if there is none; the others are told that there is none. */
function callersOf(readers: readonly (Caller | Peek)[]): Caller[] {
  const callers: Caller[] = [];
  for (const reader of readers) {
    if (reader instanceof Caller) callers.push(reader);
    else reader.look(undefined);
  }
  return callers;
}
