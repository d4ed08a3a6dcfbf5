import { isDeepStrictEqual } from 'node:util';
import { jsonCodec } from '../../core/codec.js';
import type { LoadOptions, ResolvedLoadOptions } from '../../core/options.js';
import type { Provenance } from '../../core/provenance.js';
import { StampedeCache } from '../../core/stampede-cache.js';
import type { CachedRoute } from './cache-response-options.js';
import { whyNotPlain } from './plain-body.js';
import type { RouteCall } from './route-call.js';
import type { RouteResponse } from './shared-response.js';

export interface Load {
  /** Is told where the response comes from, just before it is there. */
  readonly told?: (provenance: Provenance) => void;
  /** What is stored will not do. */
  readonly reload?: boolean;
}

/** A route's options over the defaults of each cache, resolved once. */
const resolved = new WeakMap<CachedRoute, WeakMap<StampedeCache, ResolvedLoadOptions>>();

/** The response of a key, from the cache or by the handler. */
export function loadResponse(
  { access: { cache }, route }: Pick<RouteCall, 'access' | 'route'>,
  key: string,
  load: () => Promise<RouteResponse>,
  { told, reload }: Load = {},
): Promise<RouteResponse> {
  const options = optionsOf(route, cache);
  // What a test has put in the cache's place has only what is public.
  if (!options) return cache.getOrLoad(key, load, route.load);
  return cache.getOrLoadResolved(key, load, { ...options, told, reload });
}

/** The windows in which an old response may be answered, in milliseconds. */
export function staleWindowsOf({ access: { cache }, route }: Pick<RouteCall, 'access' | 'route'>): {
  readonly staleWhileRevalidate: number;
  readonly staleIfError: number;
} {
  const { staleWhileRevalidate = 0, staleIfError = 0 } = optionsOf(route, cache) ?? {};
  return { staleWhileRevalidate, staleIfError };
}

/**
 * Why a body can't be stored, or `undefined` when it can: it is plain data, or the user's codec gives back the same. That is
 * tried rather than believed, since a codec may be there for its size alone.
 */
export function whyNotStored(
  { access: { cache }, route }: Pick<RouteCall, 'access' | 'route'>,
  body: unknown,
): string | undefined {
  const why = whyNotPlain(body);
  const codec = optionsOf(route, cache)?.codec;
  if (why === undefined || codec === undefined || codec === jsonCodec) return why;
  try {
    return isDeepStrictEqual(codec.decode(codec.encode(body)), body) ? undefined : why;
  } catch {
    return why;
  }
}

function optionsOf(route: CachedRoute, cache: StampedeCache): ResolvedLoadOptions | undefined {
  if (!(cache instanceof StampedeCache)) return undefined;
  const known = resolved.get(route) ?? new WeakMap<StampedeCache, ResolvedLoadOptions>();
  resolved.set(route, known);
  const options = known.get(cache) ?? cache.resolve(route.load as LoadOptions<RouteResponse>);
  known.set(cache, options);
  return options;
}
