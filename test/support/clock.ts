/**
 * A clock that the test moves: `await clock.advance(500)` fires what is due, in order, and lets promises settle in between.
 */
import type { Clock, Timer } from '../../lib/core/clock.js';

interface Alarm {
  readonly at: number;
  readonly run: () => void;
}

export class TestClock implements Clock {
  #now = 0;
  readonly #alarms = new Set<Alarm>();

  now(): number {
    return this.#now;
  }

  after(delay: number, run: () => void): Timer {
    const alarm = { at: this.#now + delay, run };
    this.#alarms.add(alarm);
    return { clear: () => this.#alarms.delete(alarm) };
  }

  /** Timers that are neither fired nor cleared. */
  get pending(): number {
    return this.#alarms.size;
  }

  /** A promise of so many milliseconds on this clock. */
  sleep(milliseconds: number): Promise<void> {
    return new Promise((resolve) => this.after(milliseconds, resolve));
  }

  /** Moves on, stopping at each alarm on the way. */
  async advance(milliseconds: number): Promise<void> {
    const end = this.#now + milliseconds;
    await settle();
    for (let next = this.#next(end); next; next = this.#next(end)) {
      this.#alarms.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.run();
      await settle();
    }
    this.#now = end;
    await settle();
  }

  #next(end: number): Alarm | undefined {
    let next: Alarm | undefined;
    for (const alarm of this.#alarms) if (alarm.at <= end && (!next || alarm.at < next.at)) next = alarm;
    return next;
  }
}

/** Lets every promise job and `nextTick` run that is due now. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
