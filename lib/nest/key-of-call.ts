import { InvalidOptionError } from '../core/errors.js';
import { composeKey, type Key } from '../core/keys.js';
import type { AsyncMethod, KeyFunction } from './method-decorator.js';

/** What a call of a decorated method is about; `undefined` leaves it alone. */
export type KeyOfCall<K> = (instance: object, args: readonly unknown[], where: string) => K | undefined;

/**
 * The key that the user's function makes, as one text.
 *
 * @throws InvalidOptionError when it is no function; from the result, InvalidKeyError for what can't be a key
 */
export function keyOfCall<M extends AsyncMethod>(decorator: string, key: KeyFunction<M>): KeyOfCall<string> {
  const keyOf = checkKeyFunction(`The key of ${decorator}`, key) as (...args: readonly unknown[]) => Key | undefined;
  return (instance, args, where) => {
    const parts = keyOf.apply(instance, args as unknown[]);
    return parts === undefined ? undefined : composeKey(parts, `The key that the key function of ${where} returned`);
  };
}

/** @throws InvalidOptionError when it is no function */
export function checkKeyFunction<F>(option: string, key: F): F {
  if (typeof key === 'function') return key;
  throw new InvalidOptionError(option, key, "a function of the method's arguments");
}
