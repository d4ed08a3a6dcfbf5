import { AssertionError } from 'node:assert';
import { InvalidOptionError } from '../core/errors.js';
import type { StampedeCache } from '../core/stampede-cache.js';

/** How often loaders ran since it was made. */
export interface LoadCount {
  /** In all. */
  readonly total: number;
  /** By the keys, as texts: what `composeKey` or a defined key gives. */
  readonly byKey: ReadonlyMap<string, number>;
  /** Counts from zero again. */
  reset(): void;
  /** Counts no further. */
  stop(): void;
}

/**
 * Counts how often a cache runs loaders, in this process, decorated methods included.
 *
 * @throws InvalidOptionError for what is no cache
 */
export function countLoads(cache: StampedeCache): LoadCount {
  if (typeof cache?.events?.subscribe !== 'function') throw new InvalidOptionError('cache', cache, 'a StampedeCache');
  const byKey = new Map<string, number>();
  const subscription = cache.events.subscribe((event) => {
    if (event.type === 'load') byKey.set(event.key, (byKey.get(event.key) ?? 0) + 1);
  });
  return {
    byKey,
    get total() {
      return [...byKey.values()].reduce((sum, count) => sum + count, 0);
    },
    reset: () => byKey.clear(),
    stop: () => subscription.unsubscribe(),
  };
}

/**
 * Runs something, and fails unless loaders ran so often meanwhile. In whatever test runner: what it throws is Node's
 * `AssertionError`.
 *
 * @param expected how often in all; or how often for each key, and for no other
 * @returns what `run` returns
 * @throws AssertionError naming the keys that were loaded
 * @throws InvalidOptionError, before anything runs, for what is no cache or no number of loads
 * @throws whatever `run` throws
 * @example
 * await expectLoads(cache, 1, () => Promise.all([products.find('7'), products.find('7')]));
 * await expectLoads(cache, { [productKey('7')]: 1 }, () => products.find('7'));
 */
export async function expectLoads<T>(
  cache: StampedeCache,
  expected: number | Readonly<Record<string, number>>,
  run: () => T | PromiseLike<T>,
): Promise<T> {
  checkExpected(expected);
  const loads = countLoads(cache);
  try {
    const result = await run();
    const actual = typeof expected === 'number' ? loads.total : Object.fromEntries(loads.byKey);
    if (!isSame(actual, expected)) {
      const message = `Expected loads: ${tell(expected)}; there were: ${tell(Object.fromEntries(loads.byKey))}`;
      throw new AssertionError({ message, actual, expected, operator: 'expectLoads' });
    }
    return result;
  } finally {
    loads.stop();
  }
}

type Loads = number | Readonly<Record<string, number>>;

function checkExpected(expected: unknown): void {
  const isCount = (count: unknown) => Number.isSafeInteger(count) && Number(count) >= 0;
  if (isCount(expected)) return;
  if (typeof expected === 'object' && expected !== null && Object.values(expected).every(isCount)) return;
  throw new InvalidOptionError('expected', expected, 'a whole number of loads, or an object with one for each key');
}

function isSame(actual: Loads, expected: Loads): boolean {
  if (typeof actual === 'number' || typeof expected === 'number') return actual === expected;
  return [...Object.keys(actual), ...Object.keys(expected)].every((key) => (actual[key] ?? 0) === (expected[key] ?? 0));
}

function tell(loads: Loads): string {
  if (typeof loads === 'number') return String(loads);
  const keys = Object.entries(loads).map(([key, count]) => `${count} of '${key}'`);
  return keys.join(', ') || 'none';
}
