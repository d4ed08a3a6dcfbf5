import { messageOf } from '../core/message-of.js';
import { decorateMethod } from './decorate-method.js';
import { type CacheEvictOptions, checkCacheEvictOptions } from './decorator-options.js';
import type { AsyncMethod, AsyncMethodDecorator, KeyFunction } from './method-decorator.js';

/**
 * Evicts a key after each call of a method that succeeded, before its caller goes on: whoever asks after that gets what is
 * loaded anew. A method that throws evicts nothing.
 *
 * The result is the method's also when the eviction failed: what it did is done. A line in the log then names the key,
 * and the eviction is made up for when the store is back; `onEvictError: 'throw'` changes that.
 *
 * @param key makes the key from the arguments, before the method runs; `undefined` evicts nothing
 * @throws InvalidOptionError where it is written, for an option that can't be one
 * @throws InvalidKeyError from the decorated method, before it did anything, for a key that can't be one
 * @example
 * @CacheEvict((id) => ['product', id])
 * update(id: string, changes: Partial<Product>): Promise<void> { … }
 */
export function CacheEvict<M extends AsyncMethod>(
  key: KeyFunction<M>,
  options: CacheEvictOptions = {},
): AsyncMethodDecorator<M> {
  const {
    cache,
    options: { onEvictError },
  } = checkCacheEvictOptions(options);
  return decorateMethod<M>({
    decorator: '@CacheEvict',
    key,
    cache,
    async around({ access, key, where, proceed }) {
      const result = await proceed();
      try {
        await access.cache.evict(key);
      } catch (error) {
        if (onEvictError === 'throw') throw error;
        access.logger.error(`After ${where} the key '${key}' was not evicted: ${messageOf(error)}`);
      }
      return result;
    },
  });
}
