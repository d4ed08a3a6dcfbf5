import { isDeepStrictEqual } from 'node:util';
import { jsonCodec } from '../../core/codec.js';
import type { Provenance } from '../../core/provenance.js';
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
  const { given, resolved } = route.keepingIn(cache);
  if (!resolved) return cache.getOrLoad(key, load, given);
  return cache.getOrLoadResolved(key, load, { ...resolved, told, reload });
}

/** The windows in which an old response may be answered, in milliseconds. */
export function staleWindowsOf({ access: { cache }, route }: Pick<RouteCall, 'access' | 'route'>): {
  readonly staleWhileRevalidate: number;
  readonly staleIfError: number;
} {
  const { staleWhileRevalidate = 0, staleIfError = 0 } = route.keepingIn(cache).resolved ?? {};
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
  const codec = route.keepingIn(cache).resolved?.codec;
  if (why === undefined || codec === undefined || codec === jsonCodec) return why;
  try {
    return isDeepStrictEqual(codec.decode(codec.encode(body)), body) ? undefined : why;
  } catch {
    return why;
  }
}
