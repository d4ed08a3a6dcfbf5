import type { Observable } from 'rxjs';
import { InvalidOptionError } from '../core/errors.js';
import type { OptionNames } from '../core/option-names.js';
import { DEFAULT_POLICY, type LoadOptions, resolveLoadOptions, type Ttl } from '../core/options.js';
import { CACHE_ASIDE_NAMES, type CacheAsideOptions, split } from './decorator-options.js';
import { type GetOrLoad, getOrLoadWith } from './get-or-load.js';
import { isStorable, type RouteResponse, type SharedResponse } from './shared-response.js';

/** A route handler, which may answer with a value, a promise or an Observable. */
export type RouteHandler = (...args: never[]) => unknown;

/** What a route handler answers with. */
export type BodyOf<H extends RouteHandler> =
  Awaited<ReturnType<H>> extends Observable<infer Body> ? Body : Awaited<ReturnType<H>>;

/** The options of `@CacheResponse`: those of `@CacheAside`, of the body, and what belongs to the key. */
export interface CacheResponseOptions<Body = unknown> extends CacheAsideOptions<Body> {
  /** The query's parameters that the answer depends on; others (`utm_source`) share an entry. Default: all. */
  readonly query?: readonly string[];
}

/** What `@CacheResponse` leaves on a handler. */
export interface CachedRoute {
  /** The name of the method, by which Nest knows what its parameters are. */
  readonly property: string | symbol;
  readonly cache: string | undefined;
  readonly query: readonly string[] | undefined;
  readonly getOrLoad: GetOrLoad<RouteResponse>;
}

/** The key of the metadata that holds a `CachedRoute`. */
export const CACHED_ROUTE = 'nestjs-stampede-cache:route';

const NAMES: OptionNames<CacheResponseOptions> = { ...CACHE_ASIDE_NAMES, query: true };

/** @throws InvalidOptionError naming the option */
export function checkCacheResponseOptions<Body>(
  given: Ttl<Body> | CacheResponseOptions<Body>,
): Omit<CachedRoute, 'property'> {
  const { cache, options } = split(given, NAMES, '@CacheResponse');
  const { query, ...load } = typeof options === 'object' && options !== null ? options : { ttl: options };
  resolveLoadOptions(load, DEFAULT_POLICY);
  const isQuery = query === undefined || (Array.isArray(query) && query.every((name) => typeof name === 'string'));
  if (!isQuery) throw new InvalidOptionError('query', query, "an array of the names of parameters, such as ['page']");
  return { cache, query, getOrLoad: getOrLoadWith(ofResponse(load as LoadOptions)) };
}

/** Options that were written for the body, for the response that it is a part of. */
function ofResponse({ ttl, cacheIf, ...options }: LoadOptions): LoadOptions<RouteResponse> {
  const isToStore = (response: RouteResponse): response is SharedResponse =>
    !('isPrivate' in response) && isStorable(response) && (cacheIf?.(response.body) ?? true);
  return {
    // Interceptors outside may change the body that they get, each its own.
    isolate: 'decode',
    ...options,
    ttl: typeof ttl === 'function' ? (response) => ttl((response as SharedResponse).body) : ttl,
    cacheIf: isToStore,
  };
}
