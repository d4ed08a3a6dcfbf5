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
    const timer = setTimeout(run, Math.min(delay, LONGEST_WAIT));
    return { clear: () => clearTimeout(timer) };
  },
};
