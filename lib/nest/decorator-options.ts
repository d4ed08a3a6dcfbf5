import { InvalidOptionError } from '../core/errors.js';
import type { LockOptions } from '../core/lock-service.js';
import {
  type LoadManyOptions,
  type LoadManyProfiledOptions,
  type ManyCaching,
  type OnKeyError,
  splitOnKeyError,
} from '../core/many.js';
import { checkOptionNames, type OptionNames } from '../core/option-names.js';
import type { Caching, LoadOptions, ProfiledOptions, SetCaching, SetOptions, Ttl } from '../core/options.js';
import type { ProfileName } from '../core/profile-names.js';
import { isProfileName } from '../core/profiles.js';
import { LOAD_POLICY_NAMES, resolveLoadOptions, resolvePolicy } from '../core/resolve-load-options.js';
import { DEFAULT_POLICY } from '../core/resolved-options.js';
import { checkCacheName } from './cache-name.js';

/** Which cache a decorator uses. */
export interface CacheChoice {
  /** The name under which it was registered. Default: the one without a name. */
  readonly cache?: string;
}

/** The options of `@CacheAside`: those of `getOrLoad`, for every call of the method. */
export interface CacheAsideOptions<T = unknown> extends Omit<LoadOptions<T>, 'signal'>, CacheChoice {}

/** The options of `@CacheAside` with a profile: the profile's, and others in the place of some. */
export interface CacheAsideProfileOptions<T = unknown> extends Omit<ProfiledOptions<T>, 'signal'>, CacheChoice {}

/** What `@CacheAside` takes after the key. */
export type CacheAsideSettings<T> = Ttl<T> | ProfileName | CacheAsideOptions<T> | CacheAsideProfileOptions<T>;

/** What the method with `@CacheAsideMany` returns: a value for each id in their order, or a `Map` by id. */
export type ManyReturned = 'array' | 'map';

interface ManyChoice<R extends ManyReturned> {
  /** What the method returns: an array with a value for each id, in their order, or a `Map` by id. Default `'array'`. */
  readonly returns?: R;
}

/** The options of `@CacheAsideMany`: those of `getOrLoadMany`, for every call of the method. */
export interface CacheAsideManyOptions<
  T = unknown,
  E extends OnKeyError = OnKeyError,
  R extends ManyReturned = ManyReturned,
> extends Omit<LoadManyOptions<T, E>, 'signal'>,
    ManyChoice<R>,
    CacheChoice {}

/** The options of `@CacheAsideMany` with a profile: the profile's, and others in the place of some. */
export interface CacheAsideManyProfileOptions<
  T = unknown,
  E extends OnKeyError = OnKeyError,
  R extends ManyReturned = ManyReturned,
> extends Omit<LoadManyProfiledOptions<T, E>, 'signal'>,
    ManyChoice<R>,
    CacheChoice {}

/** The options of `@CachePut`: those of `set`. */
export interface CachePutOptions<T = unknown> extends SetOptions<T>, CacheChoice {}

/** The options of `@CachePut` with a profile: the profile's, and others in the place of some. */
export interface CachePutProfileOptions<T = unknown>
  extends Partial<SetOptions<T>>,
    Pick<ProfiledOptions<T>, 'profile'>,
    CacheChoice {}

/** What `@CachePut` takes after the key. */
export type CachePutSettings<T> = Ttl<T> | ProfileName | CachePutOptions<T> | CachePutProfileOptions<T>;

/** The options of `@CacheEvict`. */
export interface CacheEvictOptions extends CacheChoice {
  /**
   * `'after'` the method succeeded; `'before'` it runs, whatever comes of it; or `'both'`, so that who asks meanwhile does
   * not get what is about to change. Default `'after'`.
   */
  readonly when?: 'after' | 'before' | 'both';
  /**
   * When the store did not acknowledge the eviction: `'log'` it and return the method's result, which stands, or `'throw'`
   * the `CacheEvictionError`, before the method runs if it is evicted before. Default `'log'`.
   */
  readonly onEvictError?: 'log' | 'throw';
}

/** The options of `@WithLock`: those of `acquire`, for every call of the method. */
export interface WithLockOptions extends Omit<LockOptions, 'signal'>, CacheChoice {}

/** Options of a decorator, checked, and apart from the choice of the cache. */
export interface CheckedOptions<Options> {
  readonly cache: string | undefined;
  readonly options: Options;
}

/** The same where a profile may be named, which is looked for at boot. */
export interface CheckedProfile<Options> extends CheckedOptions<Options> {
  readonly profile: string | undefined;
}

const CHOICE: OptionNames<CacheChoice> = { cache: true };
const EVICT_NAMES: OptionNames<CacheEvictOptions> = { when: true, onEvictError: true, ...CHOICE };
const PUT_NAMES: OptionNames<CachePutProfileOptions> = {
  profile: true,
  ttl: true,
  ttlJitter: true,
  codec: true,
  ...CHOICE,
};
const LOCK_NAMES: OptionNames<WithLockOptions> = { lease: true, renew: true, wait: true, ...CHOICE };

/** The options of `@CacheAside`; `@CacheAsideMany` and `@CacheResponse` have some more. */
export const CACHE_ASIDE_NAMES: OptionNames<CacheAsideProfileOptions> = {
  ...LOAD_POLICY_NAMES,
  ttl: true,
  cacheIf: true,
  profile: true,
  ...CHOICE,
};

/** @throws InvalidOptionError naming the option */
export function checkCacheAsideOptions<T>(given: CacheAsideSettings<T>): CheckedProfile<Caching<T>> {
  const { cache, options } = split(given, CACHE_ASIDE_NAMES, '@CacheAside');
  return { cache, options, profile: checkCaching(options) };
}

const MANY_NAMES: OptionNames<CacheAsideManyProfileOptions> = { ...CACHE_ASIDE_NAMES, errors: true, returns: true };

/** @throws InvalidOptionError naming the option */
export function checkCacheAsideManyOptions<T>(
  given: Ttl<T> | ProfileName | CacheAsideManyOptions<T> | CacheAsideManyProfileOptions<T>,
): CheckedProfile<Caching<T>> & { readonly errors: OnKeyError; readonly returns: ManyReturned } {
  const { cache, options } = split(given, MANY_NAMES, '@CacheAsideMany');
  const { returns = 'array', ...rest } = Object(options) as ManyChoice<ManyReturned>;
  if (returns !== 'array' && returns !== 'map') throw new InvalidOptionError('returns', returns, "'array' or 'map'");
  const { errors, caching } = splitOnKeyError<T>(typeof options === 'object' ? (rest as ManyCaching<T>) : options);
  return { cache, errors, returns, options: caching, profile: checkCaching(caching) };
}

/** @throws InvalidOptionError naming the option */
export function checkCachePutOptions<T>(given: CachePutSettings<T>): CheckedProfile<SetCaching<T>> {
  const { cache, options } = split(given, PUT_NAMES, '@CachePut');
  return { cache, options, profile: checkCaching(options) };
}

/**
 * @returns the name of the profile, which the cache knows
 * @throws InvalidOptionError naming the option
 */
export function checkCaching<T>(options: Caching<T> | SetCaching<T>): string | undefined {
  if (typeof options === 'string' && isProfileName(options)) return options;
  const { profile, ...others } = Object(options) as Partial<ProfiledOptions<T>>;
  if (profile === undefined) {
    resolveLoadOptions(options, DEFAULT_POLICY);
    return undefined;
  }
  if (typeof profile !== 'string' || !isProfileName(profile)) {
    throw new InvalidOptionError('profile', profile, "the name of one of the cache's profiles");
  }
  resolveLoadOptions({ ...others, ttl: others.ttl ?? 0 } as LoadOptions, DEFAULT_POLICY);
  return profile;
}

/** @throws InvalidOptionError naming the option */
export function checkCacheEvictOptions(given: CacheEvictOptions): CheckedOptions<Omit<CacheEvictOptions, 'cache'>> {
  const { cache, options } = split(objectOf(given, '@CacheEvict'), EVICT_NAMES, '@CacheEvict');
  const { onEvictError = 'log', when = 'after' } = options;
  if (onEvictError !== 'log' && onEvictError !== 'throw') {
    throw new InvalidOptionError('onEvictError', onEvictError, "'log' or 'throw'");
  }
  if (when !== 'after' && when !== 'before' && when !== 'both') {
    throw new InvalidOptionError('when', when, "'after', 'before' or 'both'");
  }
  return { cache, options: { onEvictError, when } };
}

/** @throws InvalidOptionError naming the option */
export function checkWithLockOptions(given: WithLockOptions): CheckedOptions<LockOptions> {
  const { cache, options } = split(objectOf(given, '@WithLock'), LOCK_NAMES, '@WithLock');
  const { lease, wait, renew } = options;
  resolvePolicy({ lease, wait });
  if (renew !== undefined && typeof renew !== 'boolean') throw new InvalidOptionError('renew', renew, 'true or false');
  return { cache, options };
}

/** Whatever is no object, a `ttl` above all, is left to whoever knows what else is allowed. */
export function split<Given>(
  given: Given,
  names: OptionNames<Extract<Given, object>>,
  where: string,
): CheckedOptions<Given> {
  if (typeof given !== 'object' || given === null) return { cache: undefined, options: given };
  checkOptionNames(given, names, where);
  const { cache, ...options } = given as Given & CacheChoice;
  return { cache: checkCacheName(cache, 'cache'), options: options as Given };
}

function objectOf<Given>(given: Given, where: string): Given {
  if (typeof given === 'object' && given !== null) return given;
  throw new InvalidOptionError(`The options of ${where}`, given, 'an object');
}
