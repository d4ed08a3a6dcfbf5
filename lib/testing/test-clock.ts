import timers from 'node:timers';
import type { Clock, Timer } from '../core/clock.js';
import { type Duration, parseDuration } from '../core/durations.js';

/** Taken at once, before a test may put fake timers in the place of the real ones. */
const { setImmediate } = timers;

interface Alarm {
  readonly at: number;
  readonly run: () => void;
}

/**
 * A clock that the test moves: `await clock.advance('60s')` fires what is due, in order, and lets promises settle in between.
 */
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

  /** A promise of so long on this clock: what a slow loader waits for. */
  sleep(duration: Duration): Promise<void> {
    return new Promise((resolve) => this.after(parseDuration(duration, 'duration'), resolve));
  }

  /**
   * Moves on, stopping at each timer on the way. What waits for anything but this clock and promises (a socket, a file) may
   * not have got further when this resolves.
   *
   * @param duration milliseconds, or `'60s'`; `0` lets happen what is due now
   */
  async advance(duration: Duration): Promise<void> {
    const end = this.#now + parseDuration(duration, 'duration');
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
