import { InvalidOptionError } from '../core/errors.js';
import { composeKey, type Key } from '../core/keys.js';
import { checkOptionNames, type OptionNames } from '../core/option-names.js';
import { checkKeyFunction, type KeyOfCall, keyOfCall } from './key-of-call.js';
import type { AsyncMethod, KeyFunction, ResultOf } from './method-decorator.js';

/** Several keys, each a text or an array of parts; what is `undefined` is left out. */
export type EvictedKeys = readonly (Key | undefined)[] | undefined;

/** What `@CacheEvict` evicts when that is not one key: several, or what the result says, or both. */
export interface EvictionKeys<M extends AsyncMethod> {
  /** Makes keys from the arguments, before the method runs. */
  readonly keys?: (...args: Parameters<M>) => EvictedKeys;
  /** Makes keys from the result and the arguments, after the method succeeded. */
  readonly keysOfResult?: (result: ResultOf<M>, ...args: Parameters<M>) => EvictedKeys;
}

/** The keys of one call. */
export interface KeysToEvict {
  readonly keys: readonly string[];
  /** @throws InvalidKeyError for what can't be a key, and whatever the user's function throws */
  ofResult(result: unknown): readonly string[];
}

type MakeKeys = (...args: readonly unknown[]) => EvictedKeys;

const NAMES: OptionNames<EvictionKeys<AsyncMethod>> = { keys: true, keysOfResult: true };

const FIRST_ARGUMENT =
  'the first argument of @CacheEvict, which is a function that makes one key, or an object with keys or keysOfResult';

/**
 * What a call evicts, whether one key or several are given.
 *
 * @throws InvalidOptionError when it is neither
 */
export function evictedKeys<M extends AsyncMethod>(given: KeyFunction<M> | EvictionKeys<M>): KeyOfCall<KeysToEvict> {
  if (!isSeveral(given)) {
    const keyOf = keyOfCall('@CacheEvict', given);
    return (instance, args, where) => {
      const key = keyOf(instance, args, where);
      return key === undefined ? undefined : { keys: [key], ofResult: () => [] };
    };
  }
  checkOptionNames<EvictionKeys<M>>(given, NAMES, FIRST_ARGUMENT);
  const { keys = none, keysOfResult = none } = given;
  if (keys === none && keysOfResult === none) {
    throw new InvalidOptionError('The key of @CacheEvict', given, 'a function, or an object with keys or keysOfResult');
  }
  const [make, makeOfResult] = [keys, keysOfResult] as unknown as [MakeKeys, MakeKeys];
  checkKeyFunction('keys', make);
  checkKeyFunction('keysOfResult', makeOfResult);
  return (instance, args, where) => ({
    keys: compose(make.apply(instance, args as unknown[]), `keys of ${where}`),
    ofResult: (result) => compose(makeOfResult.call(instance, result, ...args), `keysOfResult of ${where}`),
  });
}

function isSeveral<M extends AsyncMethod>(given: KeyFunction<M> | EvictionKeys<M>): given is EvictionKeys<M> {
  return typeof given === 'object' && given !== null && !Array.isArray(given);
}

function none(): undefined {}

function compose(keys: unknown, where: string): string[] {
  if (keys === undefined) return [];
  if (!Array.isArray(keys)) throw new InvalidOptionError(`What ${where} returned`, keys, 'an array of keys');
  return keys.filter((key) => key !== undefined).map((key) => composeKey(key, `Each key that ${where} returned`));
}
