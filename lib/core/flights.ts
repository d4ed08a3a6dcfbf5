import { AsyncResource } from 'node:async_hooks';
import type { Caller } from './caller.js';
import { CacheClosedError } from './errors.js';
import { Flight, type Start } from './flight.js';
import type { Tower } from './tower.js';

/** The flights of one cache: which of them the callers of a key join, and which are not over. */
export class Flights {
  readonly #tower: Tower;
  /** The flight that a call of this key joins. */
  readonly #boarding = new Map<string, Flight>();
  /** Every flight that isn't over: those above, and those whose lease has ended. */
  readonly #airborne = new Map<Flight, Promise<void>>();
  /** The AsyncLocalStorage context of background loads: that of whoever makes the cache, which is no request. */
  readonly #nobody = new AsyncResource('StampedeCacheBackground');
  #closed = false;

  constructor(tower: Tower) {
    this.#tower = tower;
  }

  /** The flight that a call of this key joins. */
  of(key: string): Flight | undefined {
    return this.#boarding.get(key);
  }

  /** One promise for each flight that isn't over; it never rejects. */
  get underWay(): Iterable<Promise<void>> {
    return this.#airborne.values();
  }

  /** The callers join the flight of their key, or a new one. */
  board(key: string, callers: readonly Caller[], start: Start): void {
    const flying = this.#boarding.get(key);
    if (flying) flying.join(callers);
    else this.#takeOff(key, callers, start);
  }

  /**
   * One load in the background, unless one is under way here or in another process.
   *
   * @param refreshing the moment until which the entry is fresh, if it is to be replaced before that
   */
  refresh(key: string, caller: Caller, refreshing?: number): void {
    if (this.#boarding.has(key)) return;
    this.#takeOff(key, [caller.inBackground(this.#nobody, this.#tower.clock.now())], { is: 'miss', refreshing });
  }

  /** Calls that come from now on don't join it. */
  depart(flight: Pick<Flight, 'key'>): void {
    if (this.#boarding.get(flight.key) === flight) this.#boarding.delete(flight.key);
  }

  /** Aborts what still runs. From now on no flight takes a lock. */
  close(): void {
    this.#closed = true;
    for (const flight of this.#airborne.keys()) flight.close();
  }

  #takeOff(key: string, callers: readonly Caller[], start: Start): void {
    const flight = new Flight(key, this.#tower);
    this.#boarding.set(key, flight);
    flight.join(callers);
    const landed = () => {
      this.#airborne.delete(flight);
      this.depart(flight);
    };
    const landing = flight
      .fly(this.#closed ? { is: 'store away', error: new CacheClosedError() } : start)
      .then(landed, (error) => {
        flight.close(error);
        landed();
      });
    this.#airborne.set(flight, landing);
  }
}
