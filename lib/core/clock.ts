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

/** `setTimeout` fires at once for longer delays (its delay is a signed 32-bit integer), so they are cut to this. */
const LONGEST_TIMEOUT = 2 ** 31 - 1;

/** The real clock. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after(delay, run) {
    const timer = setTimeout(run, Math.min(delay, LONGEST_TIMEOUT));
    return { clear: () => clearTimeout(timer) };
  },
};
