import type { Ttl } from '../core/options.js';
import { decorateMethod } from './decorate-method.js';
import { type CacheAsideOptions, checkCacheAsideOptions } from './decorator-options.js';
import { type GetOrLoad, getOrLoadWith } from './get-or-load.js';
import type { AsyncMethod, AsyncMethodDecorator, KeyFunction, ResultOf } from './method-decorator.js';

/**
 * Routes the calls of a method through the cache: one call runs the method, whoever asks for the same key meanwhile, here
 * or in another process, gets its result, which is stored for `ttl`. On any provider or controller that Nest makes, of
 * whatever scope; calls by `this` are cached as well.
 *
 * @param key makes the key from the arguments; `undefined` runs the method uncached
 * @param options the `ttl` (milliseconds, `'60s'`, or a function of the result), or options with it
 * @throws InvalidOptionError where it is written, for an option that can't be one
 * @throws InvalidKeyError, from the decorated method, for a key that can't be one; and what `getOrLoad` throws
 * @example
 * @CacheAside((id) => ['product', id], '60s')
 * find(id: string): Promise<Product> { … }
 */
export function CacheAside<M extends AsyncMethod>(
  key: KeyFunction<M>,
  options: Ttl<ResultOf<M>> | CacheAsideOptions<ResultOf<M>>,
): AsyncMethodDecorator<M> {
  const { cache, options: load } = checkCacheAsideOptions(options);
  const getOrLoad = getOrLoadWith(load) as GetOrLoad<unknown>;
  return decorateMethod<M>({
    decorator: '@CacheAside',
    key,
    cache,
    around: ({ access, key, proceed }) => getOrLoad(access.cache, key, proceed),
  });
}
