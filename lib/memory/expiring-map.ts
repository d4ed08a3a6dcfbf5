import type { Clock } from '../core/clock.js';

interface Slot<V> {
  readonly value: V;
  readonly expiresAt: number;
}

/** As small as this, looking for what expired isn't worth it. */
const SWEPT_FROM = 128;

/**
 * Values that expire by a clock, as Redis keys do. Holds at most `max` values, the least recently used going first; without
 * `max`, at most as many expired ones as live ones (and a few).
 */
export class ExpiringMap<V> {
  /** In the order of their last use. */
  readonly #slots = new Map<string, Slot<V>>();
  readonly #clock: Clock;
  readonly #max: number;
  #sweepAt = SWEPT_FROM;

  constructor(clock: Clock, max = Infinity) {
    this.#clock = clock;
    this.#max = max;
  }

  /** How many there are, expired ones that nobody has looked at since included. */
  get size(): number {
    return this.#slots.size;
  }

  get(key: string): V | undefined {
    const slot = this.#live(key);
    if (!slot) return undefined;
    this.#slots.delete(key);
    this.#slots.set(key, slot);
    return slot.value;
  }

  /** Milliseconds until the key expires; 0 when it isn't there. */
  timeLeft(key: string): number {
    const slot = this.#live(key);
    return slot ? slot.expiresAt - this.#clock.now() : 0;
  }

  /** @param ttl milliseconds; `Infinity` for ever */
  set(key: string, value: V, ttl: number): void {
    this.#slots.delete(key);
    this.#slots.set(key, { value, expiresAt: this.#clock.now() + ttl });
    if (this.#slots.size > this.#max) this.#dropOldest();
    if (this.#slots.size > this.#sweepAt) this.#sweep();
  }

  delete(key: string): void {
    this.#slots.delete(key);
  }

  #live(key: string): Slot<V> | undefined {
    const slot = this.#slots.get(key);
    if (!slot || slot.expiresAt > this.#clock.now()) return slot;
    this.#slots.delete(key);
    return undefined;
  }

  #dropOldest(): void {
    for (const key of this.#slots.keys()) {
      this.#slots.delete(key);
      return;
    }
  }

  /** Swept when it has doubled since the last time, so that a `set` costs the same on average, whatever the size. */
  #sweep(): void {
    for (const key of [...this.#slots.keys()]) this.#live(key);
    this.#sweepAt = Math.max(SWEPT_FROM, 2 * this.#slots.size);
  }
}
