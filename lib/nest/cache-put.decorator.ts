import { messageOf } from '../core/message-of.js';
import type { SetCaching } from '../core/options.js';
import { decorateMethod } from './decorate-method.js';
import { type CachePutSettings, checkCachePutOptions } from './decorator-options.js';
import { keyOfCall } from './key-of-call.js';
import type { AsyncMethod, AsyncMethodDecorator, KeyFunction, ResultOf } from './method-decorator.js';

/**
 * Stores what a method returned, after each call that succeeded, before its caller goes on. A method that throws stores
 * nothing.
 *
 * The result is the method's also when it could not be stored: what it did is done. The old value is then evicted if that
 * is possible, and a line in the log names the key.
 *
 * @param key makes the key from the arguments, before the method runs; `undefined` stores nothing
 * @param options the `ttl` (milliseconds, `'60s'`, or a function of the result), the name of a profile of the module's, or options
 * @throws InvalidOptionError where it is written, for an option that can't be one
 * @throws InvalidKeyError from the decorated method, before it did anything, for a key that can't be one
 * @example
 * @CachePut((id) => ['product', id], '60s')
 * update(id: string, changes: Partial<Product>): Promise<Product> { … }
 */
export function CachePut<M extends AsyncMethod>(
  key: KeyFunction<M>,
  options: CachePutSettings<ResultOf<M>>,
): AsyncMethodDecorator<M> {
  const { cache, profile, options: set } = checkCachePutOptions(options);
  return decorateMethod<M, string>({
    decorator: '@CachePut',
    cache,
    profile,
    keyOf: keyOfCall('@CachePut', key),
    async around({ access, key, where, proceed }) {
      const result = await proceed();
      try {
        await access.cache.set(key, result, set as SetCaching<unknown>);
      } catch (error) {
        const evicted = await access.cache.evict(key).then(
          () => 'the old value was evicted instead',
          () => 'the old one may be served until its ttl ends',
        );
        access.logger.error(`What ${where} returned was not stored as '${key}'; ${evicted}: ${messageOf(error)}`);
      }
      return result;
    },
  });
}
