import type { OnKeyError } from '../core/many.js';
import type { Caching, LoadOptions } from '../core/options.js';
import type { ResolvedLoadOptions } from '../core/resolved-options.js';
import { StampedeCache } from '../core/stampede-cache.js';

/** `getOrLoad` of whichever cache, with options that are known before. */
export type GetOrLoad<T> = (cache: StampedeCache, key: string, load: () => Promise<T>) => Promise<T>;

/** Resolves the options once for each cache, not for each call. */
export function getOrLoadWith<T>(options: Caching<T>): GetOrLoad<T> {
  const resolve = resolveOnce(options);
  return (cache, key, load) => {
    // What a test has put in the cache's place has only what is public.
    if (!(cache instanceof StampedeCache)) return (cache as StampedeCache).getOrLoad(key, load, options);
    return cache.getOrLoadResolved(key, load, resolve(cache));
  };
}

/** `getOrLoadMany` of whichever cache, with options that are known before. */
export type GetOrLoadMany = (
  cache: StampedeCache,
  keys: readonly string[],
  load: (keys: readonly string[]) => Promise<unknown[]>,
) => Promise<unknown[]>;

/** The same for many. */
export function getOrLoadManyWith(caching: Caching<unknown>, errors: OnKeyError): GetOrLoadMany {
  const resolve = resolveOnce(caching);
  return (cache, keys, load) => {
    if (cache instanceof StampedeCache) return cache.getOrLoadManyResolved(keys, load, resolve(cache), errors);
    const options = errors === 'throw' ? caching : { ...(caching as LoadOptions), errors };
    return (cache as StampedeCache).getOrLoadMany(keys, load, options);
  };
}

/** Options over the defaults of each cache, resolved at the first call. */
function resolveOnce<T>(options: Caching<T>): (cache: StampedeCache) => ResolvedLoadOptions {
  return onceForEach((cache) => cache.resolve(options));
}

/** What is the same for all calls of a cache, made at the first. */
export function onceForEach<T extends object>(make: (cache: StampedeCache) => T): (cache: StampedeCache) => T {
  const made = new WeakMap<StampedeCache, T>();
  return (cache) => {
    let known = made.get(cache);
    if (!known) {
      known = make(cache);
      made.set(cache, known);
    }
    return known;
  };
}
