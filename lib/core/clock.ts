import { LONGEST_WAIT } from './durations.js';

/** A timer that can be taken back. */
export interface Timer {
  /** What it was to run is not run. */
  clear(): void;
}

/**
 * The time of this process: monotonic, in milliseconds, never the wall clock, so that a corrected host clock moves no
 * lease and no deadline. Tests put a clock in its place that they move themselves.
 */
export interface Clock {
  /** Milliseconds since some fixed moment; never goes back. */
  now(): number;
  /** Calls `run` once, `delay` milliseconds from now, unless the timer is cleared first. */
  after(delay: number, run: () => void): Timer;
}

/** The real clock. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after(delay, run) {
    // For a longer delay `setTimeout` fires at once.
    return new SystemTimer(setTimeout(run, Math.min(delay, LONGEST_WAIT)));
  },
};

/**
 * A class, since each command has one: V8 puts a function that is written as the value of a property where it expects it to
 * live long, so it stays until a full collection, and with it all that it knows of, here a command and its reply.
 */
class SystemTimer implements Timer {
  readonly #timeout: NodeJS.Timeout;

  constructor(timeout: NodeJS.Timeout) {
    this.#timeout = timeout;
  }

  clear(): void {
    clearTimeout(this.#timeout);
  }
}
