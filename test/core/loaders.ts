/** Loaders for tests: how often they ran, how many at once, and with which signals. */
import { expect } from '@jest/globals';
import type { LoadContext } from '../../lib/core/caller.js';
import type { TestClock } from '../support/clock.js';

export interface CountedLoader<T> {
  (context: LoadContext): Promise<T>;
  /** How often it was called. */
  readonly runs: number;
  /** How many of these ran at the same time at most. */
  readonly most: number;
  /** The signal of each run. */
  readonly signals: readonly AbortSignal[];
}

/** A loader that takes `time` milliseconds of the clock and then gives what `make` makes, by the number of its run from 1. */
export function slowLoader<T>(clock: TestClock, time: number, make: (run: number) => T): CountedLoader<T> {
  let running = 0;
  let most = 0;
  const signals: AbortSignal[] = [];
  const load = async ({ signal }: LoadContext) => {
    const run = signals.push(signal);
    running += 1;
    most = Math.max(most, running);
    try {
      await clock.sleep(time);
      return make(run);
    } finally {
      running -= 1;
    }
  };
  return Object.defineProperties(load as CountedLoader<T>, {
    runs: { get: () => signals.length },
    most: { get: () => most },
    signals: { value: signals },
  });
}

/** So many calls of the same. */
export function crowd<T>(count: number, call: () => Promise<T>): Promise<T>[] {
  return Array.from({ length: count }, call);
}

/** Where a promise has got to, without waiting for it. */
export interface Followed<T> {
  readonly value: T | undefined;
  readonly error: unknown;
  readonly settled: boolean;
}

export function follow<T>(promise: Promise<T>): Followed<T> {
  const followed: { value: T | undefined; error: unknown; settled: boolean } = {
    value: undefined,
    error: undefined,
    settled: false,
  };
  promise.then(
    (value) => Object.assign(followed, { value, settled: true }),
    (error) => Object.assign(followed, { error, settled: true }),
  );
  return followed;
}

/** Expects these to be settled, all with this value. */
export function expectAll<T>(calls: readonly Followed<T>[], value: T): void {
  expect(calls).toEqual(calls.map(() => ({ value, error: undefined, settled: true })));
}

/** A loader of many: which keys it was given, each time. */
export interface CountedLoadMany<T> {
  (keys: readonly string[], context: LoadContext): Promise<T>;
  readonly calls: readonly (readonly string[])[];
  readonly signals: readonly AbortSignal[];
}

/** A loader of many that takes `time` milliseconds of the clock (0: none) and then gives what `make` makes of its keys. */
export function slowLoadMany<T>(
  clock: TestClock,
  time: number,
  make: (keys: readonly string[], call: number) => T,
): CountedLoadMany<T> {
  const calls: (readonly string[])[] = [];
  const signals: AbortSignal[] = [];
  const load = async (keys: readonly string[], { signal }: LoadContext) => {
    const call = calls.push(keys);
    signals.push(signal);
    if (time > 0) await clock.sleep(time);
    return make(keys, call);
  };
  return Object.assign(load, { calls, signals });
}
