import { decorateMethod } from './decorate-method.js';
import { type CacheAsideSettings, checkCacheAsideOptions } from './decorator-options.js';
import { type GetOrLoad, getOrLoadWith } from './get-or-load.js';
import { keyOfCall } from './key-of-call.js';
import type { AsyncMethod, AsyncMethodDecorator, KeyFunction, ResultOf } from './method-decorator.js';

/**
 * Routes the calls of a method through the cache: one call runs the method, whoever asks for the same key meanwhile, here
 * or in another process, gets its result, which is stored for `ttl`. On any provider or controller that Nest makes, of
 * whatever scope; calls by `this` are cached as well.
 *
 * @param key makes the key from the arguments; `undefined` runs the method uncached
 * @param options the `ttl` (milliseconds, `'60s'`, or a function of the result), the name of a profile of the module's, or options
 * @throws InvalidOptionError where it is written, for an option that can't be one
 * @throws InvalidKeyError, from the decorated method, for a key that can't be one; and what `getOrLoad` throws
 * @example
 * @CacheAside((id) => ['product', id], '60s')
 * find(id: string): Promise<Product> { … }
 */
export function CacheAside<M extends AsyncMethod>(
  key: KeyFunction<M>,
  options: CacheAsideSettings<ResultOf<M>>,
): AsyncMethodDecorator<M> {
  const { cache, profile, options: load } = checkCacheAsideOptions(options);
  const getOrLoad = getOrLoadWith(load) as GetOrLoad<unknown>;
  return decorateMethod<M, string>({
    decorator: '@CacheAside',
    cache,
    profile,
    once: true,
    keyOf: keyOfCall('@CacheAside', key),
    around: ({ access, key, proceed }) => getOrLoad(access.cache, key, proceed),
  });
}
