import { decorateMethod } from './decorate-method.js';
import { checkWithLockOptions, type WithLockOptions } from './decorator-options.js';
import { keyOfCall } from './key-of-call.js';
import type { AsyncMethod, AsyncMethodDecorator, KeyFunction } from './method-decorator.js';

/**
 * Runs a method while holding a lock, one call at a time in all processes, and releases it whatever comes of that. The lock
 * is not reentrant: a method that calls another one with the same key waits for itself.
 *
 * Where the method has to know of the lock (its fencing token, or the signal that tells of its loss), use
 * `LockService.withLock`.
 *
 * @param key makes the key from the arguments; `undefined` runs the method without a lock
 * @throws InvalidOptionError where it is written, for an option that can't be one
 * @throws LockContendedError, from the decorated method, when the lock was not free for the whole `wait`
 * @throws LockUnavailableError, from the decorated method, when the store does not answer: then it does not run
 * @throws InvalidKeyError from the decorated method for a key that can't be one
 * @example
 * @WithLock((month) => ['report', month], { wait: '5s' })
 * build(month: string): Promise<Report> { … }
 */
export function WithLock<M extends AsyncMethod>(
  key: KeyFunction<M>,
  options: WithLockOptions = {},
): AsyncMethodDecorator<M> {
  const { cache, options: lock } = checkWithLockOptions(options);
  return decorateMethod<M, string>({
    decorator: '@WithLock',
    cache,
    keyOf: keyOfCall('@WithLock', key),
    around: ({ access, key, proceed }) => access.locks.withLock(key, lock, proceed),
  });
}
