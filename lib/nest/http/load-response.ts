import { isDeepStrictEqual } from 'node:util';
import { jsonCodec } from '../../core/codec.js';
import type { Provenance } from '../../core/provenance.js';
import type { ResolvedLoadOptions } from '../../core/resolved-options.js';
import { StampedeCache } from '../../core/stampede-cache.js';
import type { CachedRoute } from './cache-response-options.js';
import { whyNotPlain } from './plain-body.js';
import type { RouteCall } from './route-call.js';
import type { RouteResponse } from './shared-response.js';

/** What a request wants beside the route's options. */
export interface Wishes {
  /** Is told where the response comes from, just before it is there. */
  readonly told?: (provenance: Provenance) => void;
  /** What is stored will not do. */
  readonly reload?: boolean;
}

/** The response of a key, from the cache or by the handler. */
export function loadResponse(
  { access: { cache }, route }: Pick<RouteCall, 'access' | 'route'>,
  key: string,
  load: () => Promise<RouteResponse>,
  { told, reload }: Wishes = {},
): Promise<RouteResponse> {
  const options = optionsOf(route, cache);
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

/** `undefined` for what a test has put in the cache's place, which has only what is public. */
function optionsOf(route: CachedRoute, cache: StampedeCache): ResolvedLoadOptions | undefined {
  return cache instanceof StampedeCache ? route.optionsIn(cache) : undefined;
}
