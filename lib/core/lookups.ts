import { type Aged, isDueEarly, stalenessOf } from './aged.js';
import type { Answer } from './answer.js';
import { Caller } from './caller.js';
import { EvictionPendingError } from './errors.js';
import type { Start } from './flight.js';
import type { Flights } from './flights.js';
import type { Kept } from './kept.js';
import { looksAtAge } from './options.js';
import { type Found, Reads } from './reads.js';
import { answerStale } from './settling.js';
import type { Tower } from './tower.js';

/** Who only looks: `get` and `has`. */
export interface Peek {
  look(found: Answer | undefined): void;
}

/** Reads keys, and gives what was found to all who had asked; those for whom it isn't good enough board a flight. */
export class Lookups {
  readonly #tower: Tower;
  readonly #flights: Flights;
  readonly #kept: Kept;
  readonly #reads: Reads<Caller | Peek>;
  /** Some calls have windows and others none: those, too, need the store's time for what the former have stored. */
  #needsTime = false;
  #closed = false;

  constructor(tower: Tower, flights: Flights, kept: Kept) {
    this.#tower = tower;
    this.#flights = flights;
    this.#kept = kept;
    this.#reads = new Reads(
      (keys, withTime) => tower.store.read(keys, withTime),
      (key, readers, found) => this.#deliver(key, readers, found),
    );
  }

  /** Those whose callers have not been told yet. */
  get underWay(): Iterable<Promise<void>> {
    return this.#reads.underWay;
  }

  read(key: string, callers: readonly Caller[]): void {
    this.#reads.add(key, callers, this.#needsTime || callers.some(({ options }) => looksAtAge(options)));
  }

  peek(key: string): Promise<Answer | undefined> {
    return new Promise((look) => this.#reads.add(key, [{ look }], true));
  }

  /** From now on nothing that was kept is answered. */
  close(): void {
    this.#closed = true;
  }

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
    this.#kept.clear();
    const aged = typeof text === 'string' ? this.#tower.readEntry(key, text, callers[0]) : undefined;
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
    if (eager) this.#flights.refresh(key, eager, aged.freshUntil);
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
    else if (answered) this.#flights.refresh(key, answered);
  }

  #miss(key: string, callers: readonly Caller[], start: Start): void {
    const { events } = this.#tower;
    if (events.observed) for (const _ of callers) events.emit({ type: 'miss', key });
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
      if (events.observed) events.emit({ type: 'kept', key });
      caller.answer(kept);
    }
  }
}
