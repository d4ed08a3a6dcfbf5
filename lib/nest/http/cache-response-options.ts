import type { ExecutionContext } from '@nestjs/common';
import type { Observable } from 'rxjs';
import { FOR_EVER, parseDuration } from '../../core/durations.js';
import { InvalidOptionError } from '../../core/errors.js';
import type { Key } from '../../core/keys.js';
import type { OptionNames } from '../../core/option-names.js';
import type { Caching, LoadOptions, Ttl } from '../../core/options.js';
import type { ProfileName } from '../../core/profile-names.js';
import { isProfileName } from '../../core/profiles.js';
import { resolveLoadOptions } from '../../core/resolve-load-options.js';
import { DEFAULT_POLICY, type ResolvedLoadOptions } from '../../core/resolved-options.js';
import { StampedeCache } from '../../core/stampede-cache.js';
import {
  CACHE_ASIDE_NAMES,
  type CacheAsideOptions,
  type CacheAsideProfileOptions,
  checkCaching,
  split,
} from '../decorator-options.js';
import { onceForEach } from '../get-or-load.js';
import { isStorable, type RouteResponse, type SharedResponse, STORED_HEADERS } from './shared-response.js';

/** A route handler, which may answer with a value, a promise or an Observable. */
export type RouteHandler = (...args: never[]) => unknown;

/** What a route handler answers with. */
export type BodyOf<H extends RouteHandler> =
  Awaited<ReturnType<H>> extends Observable<infer Body> ? Body : Awaited<ReturnType<H>>;

/** What `Cache-Control` tells browsers and other caches in between. */
export type CacheControl = 'max-age' | 'no-cache' | false;

/** What `@CacheResponse` takes beside the options of `@CacheAside`: what belongs to HTTP. */
interface ResponseChoices {
  /** The query's parameters that the answer depends on; others (`utm_source`) share an entry. Default: all. */
  readonly query?: readonly string[];
  /** The request's headers that the answer depends on: `['accept-language']`. Each value has an entry of its own. */
  readonly vary?: readonly string[];
  /**
   * What else the answer depends on: a user, a tenant. It is added to the key, so that it need not tell routes apart;
   * `undefined` leaves this request uncached. Also what caches GraphQL resolvers and handlers of messages.
   */
  readonly key?: (context: ExecutionContext) => Key | undefined;
  /**
   * By what the answer can be evicted: `cache.evict(responsesOf(key))`. It tells no answers apart, and costs each request one
   * more read; `undefined` leaves this request uncached.
   */
  readonly evictBy?: (context: ExecutionContext) => Key | undefined;
  /** Whether the answer is the same for everybody, also for requests that say who asks. Default false. */
  readonly shared?: boolean;
  /** The response's headers that are stored beside the usual ones, such as `['x-total-count']`. */
  readonly headers?: readonly string[];
  /** Whether a request's `Cache-Control: no-cache`, or `max-age=0`, loads anew. Default false: it is ignored. */
  readonly clientMayRefresh?: boolean;
  /**
   * What `Cache-Control` tells browsers and caches in between: `'max-age'` lets them keep the answer for `ttl`, out of reach
   * of any eviction; `'no-cache'` lets them ask each time, so that an `ETag` saves the body only; `false` tells them nothing.
   * Default `'max-age'`. The application's own `Cache-Control` goes before it.
   */
  readonly cacheControl?: CacheControl;
}

/** The options of `@CacheResponse`: those of `@CacheAside`, of the body, and what belongs to HTTP. */
export interface CacheResponseOptions<Body = unknown> extends CacheAsideOptions<Body>, ResponseChoices {}

/** The options of `@CacheResponse` with a profile: the profile's, and others in the place of some. */
export interface CacheResponseProfileOptions<Body = unknown> extends CacheAsideProfileOptions<Body>, ResponseChoices {}

/** What `@CacheResponse` takes. */
export type CacheResponseSettings<Body> =
  | Ttl<Body>
  | ProfileName
  | CacheResponseOptions<Body>
  | CacheResponseProfileOptions<Body>;

/** What `@CacheResponse` leaves on a handler or a controller. */
export interface CachedRoute {
  readonly cache: string | undefined;
  readonly query: readonly string[] | undefined;
  /** In lower case. */
  readonly vary: readonly string[];
  readonly key: ((context: ExecutionContext) => Key | undefined) | undefined;
  readonly evictBy: ((context: ExecutionContext) => Key | undefined) | undefined;
  readonly isShared: boolean;
  /** All that are stored, in lower case. */
  readonly headers: ReadonlySet<string>;
  readonly clientMayRefresh: boolean;
  readonly cacheControl: CacheControl;
  /** The name of the profile, if it has one: looked for at boot. */
  readonly profile: string | undefined;
  /** How its responses are kept in a cache. */
  readonly keepingIn: (cache: StampedeCache) => Keeping;
}

/** How the responses of a route are kept. */
export interface Keeping {
  /** For `getOrLoad`. */
  readonly given: Caching<RouteResponse>;
  /** The same over the defaults of the cache, and the profile; `undefined` in one that has only what is public. */
  readonly resolved: ResolvedLoadOptions | undefined;
  /** Fixes how long a response is fresh, if it is to be stored. */
  withTtl(response: SharedResponse, body: unknown): SharedResponse;
}

/** The key of the metadata that holds a `CachedRoute`, or `false` for one that is not cached after all. */
export const CACHED_ROUTE = 'nestjs-stampede-cache:route';

const NAMES: OptionNames<CacheResponseProfileOptions> = {
  ...CACHE_ASIDE_NAMES,
  query: true,
  vary: true,
  key: true,
  evictBy: true,
  shared: true,
  headers: true,
  clientMayRefresh: true,
  cacheControl: true,
};

/** @throws InvalidOptionError naming the option */
export function checkCacheResponseOptions<Body>(given: CacheResponseSettings<Body>): CachedRoute {
  const { cache, options } = split(given, NAMES, '@CacheResponse');
  const { query, vary, key, evictBy, shared, headers, clientMayRefresh, cacheControl, ...load } = objectOf(options);
  const profile = checkCaching(load as Caching<Body>);
  if (![undefined, 'max-age', 'no-cache', false].includes(cacheControl))
    throw new InvalidOptionError('cacheControl', cacheControl, "'max-age', 'no-cache' or false");
  return {
    cache,
    query: checkNames('query', query, /./s, "an array of the names of parameters, such as ['page']"),
    vary: checkHeaders('vary', vary),
    key: checkKeyOf('key', key),
    evictBy: checkKeyOf('evictBy', evictBy),
    isShared: checkSwitch('shared', shared),
    headers: new Set([...STORED_HEADERS, ...checkStoredHeaders(headers)]),
    clientMayRefresh: checkSwitch('clientMayRefresh', clientMayRefresh),
    cacheControl: cacheControl ?? 'max-age',
    profile,
    keepingIn: onceForEach((cache) => keepingIn(cache, load as Partial<LoadOptions>)),
  };
}

function checkKeyOf<F>(option: string, given: F | undefined): F | undefined {
  if (given === undefined || typeof given === 'function') return given;
  throw new InvalidOptionError(option, given, 'a function of the ExecutionContext');
}

/** What stands for options that have only a ttl, or a profile. */
function objectOf<Body>(given: CacheResponseSettings<Body>): Partial<CacheResponseProfileOptions<Body>> {
  if (typeof given === 'object' && given !== null) return given;
  if (typeof given === 'string' && isProfileName(given)) return { profile: given as ProfileName };
  return { ttl: given as Ttl<Body> };
}

/** Options that were written for the body, for the response that it is a part of. */
function keepingIn(cache: StampedeCache, options: Partial<LoadOptions>): Keeping {
  const isOurs = cache instanceof StampedeCache;
  // What a test has put in the cache's place knows of no profiles, either.
  const { ttl, cacheIf } = isOurs
    ? cache.resolve(options as Caching<unknown>)
    : resolveLoadOptions({ ttl: 0, ...options, profile: undefined } as LoadOptions, DEFAULT_POLICY);
  /** What the user's functions threw, to be thrown where the core asks for the ttl, and tells of it. */
  const failures = new WeakMap<object, unknown>();
  /** Not `Infinity`: the age of an entry without end can't be told. */
  const msOf = (body: unknown) => Math.min(FOR_EVER, parseDuration(typeof ttl === 'function' ? ttl(body) : ttl, 'ttl'));
  const given: LoadOptions<RouteResponse> = {
    // Interceptors outside may change the body that they get, each its own.
    isolate: 'decode',
    ...options,
    ttl: (response) => {
      if (failures.has(response)) throw failures.get(response);
      return (response as SharedResponse).ttl ?? 0;
    },
    cacheIf: (response) => failures.has(response) || (isStorable(response) && response.ttl !== undefined),
  };
  return {
    given,
    // With all the names that a request gives: a copy that is to get others takes 16 µs instead of half a one.
    resolved: isOurs ? { ...cache.resolve(given), told: undefined, reload: undefined } : undefined,
    withTtl(response, body) {
      if (!isStorable(response)) return response;
      try {
        return (cacheIf?.(body) ?? true) ? { ...response, ttl: msOf(body) } : response;
      } catch (error) {
        failures.set(response, error);
        return response;
      }
    },
  };
}

/** RFC 9110's token. */
const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;

function checkHeaders(option: string, given: unknown): readonly string[] {
  const names = checkNames(option, given, TOKEN, "an array of the names of headers, such as ['accept-language']") ?? [];
  if (names.includes('*')) throw new InvalidOptionError(option, given, "without '*', which no entry would ever match");
  return names.map((name) => name.toLowerCase());
}

/** What belongs to one client, to one connection, or to us. */
const NEVER_STORED =
  /^(?:set-cookie2?|age|cache-status|vary|date|content-length|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|www-authenticate|authentication-info|access-control-.*)$/;

function checkStoredHeaders(given: unknown): readonly string[] {
  const names = checkHeaders('headers', given);
  const never = names.find((name) => NEVER_STORED.test(name));
  if (never !== undefined)
    throw new InvalidOptionError('headers', given, `without ${never}, which is for one client only`);
  return names;
}

function checkNames(option: string, given: unknown, name: RegExp, allowed: string): readonly string[] | undefined {
  if (given === undefined) return undefined;
  if (Array.isArray(given) && given.every((each) => typeof each === 'string' && name.test(each))) return [...given];
  throw new InvalidOptionError(option, given, allowed);
}

function checkSwitch(option: string, given: unknown): boolean {
  if (given === undefined || typeof given === 'boolean') return given ?? false;
  throw new InvalidOptionError(option, given, 'true or false');
}
