import type { Caching, ResolvedLoadOptions } from '../core/options.js';
import { StampedeCache } from '../core/stampede-cache.js';

/** `getOrLoad` of whichever cache, with options that are known before. */
export type GetOrLoad<T> = (cache: StampedeCache, key: string, load: () => Promise<T>) => Promise<T>;

/** Resolves the options once for each cache, not for each call. */
export function getOrLoadWith<T>(options: Caching<T>): GetOrLoad<T> {
  const resolved = new WeakMap<StampedeCache, ResolvedLoadOptions>();
  return (cache, key, load) => {
    // What a test has put in the cache's place has only what is public.
    if (!(cache instanceof StampedeCache)) return (cache as StampedeCache).getOrLoad(key, load, options);
    let known = resolved.get(cache);
    if (!known) {
      known = cache.resolve(options);
      resolved.set(cache, known);
    }
    return cache.getOrLoadResolved(key, load, known);
  };
}
