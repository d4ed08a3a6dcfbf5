const BYPASS = Symbol('stampede cache: bypassed');

/**
 * Makes the decorated methods of this one instance plain methods, for unit tests that make it without Nest: nothing is
 * cached, evicted, stored or locked, and no key function is called.
 *
 * @returns the same instance
 * @example const products = bypassStampedeCache(new ProductsService(fakeDatabase));
 */
export function bypassStampedeCache<T extends object>(instance: T): T {
  return Object.defineProperty(instance, BYPASS, { value: true, configurable: true });
}

/** @internal */
export function isBypassed(instance: object | undefined): boolean {
  return instance !== undefined && instance !== null && BYPASS in instance;
}
