import { types } from 'node:util';
import { InvalidLoadResultError, InvalidOptionError } from '../core/errors.js';
import { composeKey, type Key } from '../core/keys.js';
import { valuesOf } from '../core/many-values.js';
import { decorateMethod } from './decorate-method.js';
import { type CacheAsideManyOptions, checkCacheAsideManyOptions, type ManyReturned } from './decorator-options.js';
import { getOrLoadManyWith } from './get-or-load.js';
import { checkKeyFunction, type KeyOfCall } from './key-of-call.js';
import type { CacheAsideManySettings, IdKeyFunction, ManyMethod } from './many-method.js';
import type { AsyncMethodDecorator } from './method-decorator.js';

/** What a call is about: its ids, each with its key, if it has one. Of ids with the same key the first is asked for. */
interface KeyedIds {
  readonly keys: readonly (string | undefined)[];
  readonly ids: readonly unknown[];
  readonly idOf: ReadonlyMap<string, unknown>;
}

/**
 * Routes the calls of a method that takes a list of ids, and gives a value for each, through the cache: it runs with the ids
 * whose values are neither stored nor loaded by anybody, and what it gives is stored for each under a key of its own, where
 * `@CacheAside` finds it as well.
 *
 * The method gives an array with one value for each id, in their order, `undefined` where there is none; or a `Map` by id
 * (then the options must say `returns: 'map'`). An `Error` in the place of a value is the failure of that id alone: the call
 * rejects with it, or with `errors: 'return'` has it in its place.
 *
 * @param key makes the key of one id, from it and the method's other arguments; `undefined` leaves that id uncached
 * @param options the `ttl` (milliseconds, `'60s'`, or a function of a value), the name of a profile of the module's, or options
 * @throws InvalidOptionError where it is written, for an option that can't be one
 * @throws InvalidKeyError, from the decorated method, for a key that can't be one; and what `getOrLoadMany` throws
 * @example
 * @CacheAsideMany((id) => ['product', id], '60s')
 * findMany(ids: readonly string[]): Promise<(Product | undefined)[]> { … }
 */
export function CacheAsideMany<M extends ManyMethod>(
  key: IdKeyFunction<M>,
  options: CacheAsideManySettings<M>,
): AsyncMethodDecorator<M> {
  const {
    cache,
    profile,
    errors,
    returns,
    options: caching,
  } = checkCacheAsideManyOptions(options as CacheAsideManyOptions);
  const getOrLoadMany = getOrLoadManyWith(caching, errors);
  return decorateMethod<M, KeyedIds>({
    decorator: '@CacheAsideMany',
    cache,
    profile,
    once: true,
    keyOf: keysOfCall(key as IdKeyFunction<ManyMethod>),
    isSame: (one, other) => [...other.idOf.keys()].some((each) => one.idOf.has(each)),
    async around({ access, key: { keys, ids, idOf }, where, args, proceedWith }) {
      const load = async (some: readonly unknown[]) => {
        const result = await proceedWith([some, ...args.slice(1)]);
        return valuesOf(checkReturned(result, returns, where), some, { loader: where, ids: 'ids' });
      };
      const uncached = ids.filter((_, i) => keys[i] === undefined);
      const [cached, others] = await Promise.all([
        getOrLoadMany(access.cache, [...idOf.keys()], (missing) => load(missing.map((each) => idOf.get(each)))),
        uncached.length > 0 ? load(uncached) : [],
      ]);
      const byKey = new Map([...idOf.keys()].map((each, i) => [each, cached[i]]));
      const rest = others.values();
      const values = keys.map((each) => (each === undefined ? rest.next().value : byKey.get(each)));
      return returns === 'array' ? values : mapOf(ids, values);
    },
  });
}

function keysOfCall(key: IdKeyFunction<ManyMethod>): KeyOfCall<KeyedIds> {
  const keyOf = checkKeyFunction('The key of @CacheAsideMany', key) as (...args: unknown[]) => Key | undefined;
  return (instance, [ids, ...rest], where) => {
    if (!Array.isArray(ids)) throw new InvalidOptionError(`The first argument of ${where}`, ids, 'an array of ids');
    const keys = ids.map((id) => {
      const parts = keyOf.call(instance, id, ...rest);
      return parts === undefined ? undefined : composeKey(parts, `The key that the key function of ${where} returned`);
    });
    const idOf = new Map<string, unknown>();
    for (const [i, each] of keys.entries()) if (each !== undefined && !idOf.has(each)) idOf.set(each, ids[i]);
    if (ids.length > 0 && idOf.size === 0) return undefined;
    return { ids, keys, idOf };
  };
}

/** @throws InvalidLoadResultError, since what is given when all is found would be of another kind */
function checkReturned(result: unknown, returns: ManyReturned, where: string): unknown {
  if (returns === 'map' ? types.isMap(result) : !types.isMap(result)) return result;
  throw new InvalidLoadResultError(
    returns === 'map'
      ? `${where} must return a Map, as its @CacheAsideMany says returns: 'map'.`
      : `${where} returned a Map. Say so in the options of its @CacheAsideMany: returns: 'map'.`,
  );
}

/** Without those that have no value: nobody knows any more whether they were in the Map. */
function mapOf(ids: readonly unknown[], values: readonly unknown[]): Map<unknown, unknown> {
  const pairs = ids.map((id, i) => [id, values[i]] as const);
  return new Map(pairs.filter(([, value]) => value !== undefined));
}
