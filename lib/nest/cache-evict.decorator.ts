import { CacheEvictionError, InvalidOptionError } from '../core/errors.js';
import { messageOf } from '../core/message-of.js';
import type { CacheAccess } from './cache-access.js';
import { decorateMethod } from './decorate-method.js';
import { type CacheEvictOptions, checkCacheEvictOptions } from './decorator-options.js';
import { type EvictionKeys, evictedKeys, type KeysToEvict } from './evicted-keys.js';
import type { AsyncMethod, AsyncMethodDecorator, KeyFunction } from './method-decorator.js';

/**
 * Evicts keys after each call of a method that succeeded, before its caller goes on: whoever asks after that gets what is
 * loaded anew. A method that throws evicts nothing, unless `when` says so.
 *
 * The result is the method's also when the eviction failed: what it did is done. A line in the log then names the keys,
 * and the eviction is made up for when the store is back; `onEvictError: 'throw'` changes that.
 *
 * @param key makes the key from the arguments, before the method runs; `undefined` evicts nothing. Several keys, or those
 * that only the result knows, are made by `{ keys, keysOfResult }`
 * @throws InvalidOptionError where it is written, for an option that can't be one
 * @throws InvalidKeyError from the decorated method, before it did anything, for a key of its arguments that can't be one
 * @example
 * @CacheEvict((id) => ['product', id])
 * update(id: string, changes: Partial<Product>): Promise<void> { … }
 *
 * @CacheEvict({ keysOfResult: (product, id) => [['product', id], ['category', product.category]] })
 * move(id: string, category: string): Promise<Product> { … }
 */
export function CacheEvict<M extends AsyncMethod>(
  key: KeyFunction<M> | EvictionKeys<M>,
  options: CacheEvictOptions = {},
): AsyncMethodDecorator<M> {
  const {
    cache,
    options: { onEvictError, when },
  } = checkCacheEvictOptions(options);
  const keyOf = evictedKeys(key);
  if (when !== 'after' && typeof key === 'object' && key.keys === undefined) {
    throw new InvalidOptionError('when', when, "'after', or keys given: before the method runs there is no result");
  }

  async function evict(access: CacheAccess, where: string, makeKeys: () => KeysToEvict['keys']): Promise<void> {
    let keys: KeysToEvict['keys'] = [];
    try {
      keys = makeKeys();
      const [first] = keys;
      if (first !== undefined) await access.cache.evict(keys.length === 1 ? first : keys);
    } catch (error) {
      if (onEvictError === 'throw') throw error;
      access.logger.error(`${where} ${notEvicted(error, keys)}: ${messageOf(error)}`);
    }
  }

  return decorateMethod<M, KeysToEvict>({
    decorator: '@CacheEvict',
    cache,
    keyOf,
    async around({ access, key: { keys, ofResult }, where, proceed }) {
      if (when !== 'after') await evict(access, `Before ${where}`, () => keys);
      const result = await proceed();
      await Promise.all([
        when !== 'before' && evict(access, `After ${where}`, () => keys),
        evict(access, `After ${where}`, () => ofResult(result)),
      ]);
      return result;
    },
  });
}

function notEvicted(error: unknown, all: readonly string[]): string {
  const keys = (error instanceof CacheEvictionError ? error.keys : all).map((key) => `'${key}'`);
  if (keys.length === 0) return 'nothing was evicted of what keysOfResult makes';
  return keys.length === 1 ? `the key ${keys[0]} was not evicted` : `the keys ${keys.join(', ')} were not evicted`;
}
