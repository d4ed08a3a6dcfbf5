import { InvalidOptionError } from '../core/errors.js';
import type { LockOptions } from '../core/lock-service.js';
import {
  DEFAULT_POLICY,
  type LoadOptions,
  resolveLoadOptions,
  resolvePolicy,
  type SetOptions,
  type Ttl,
} from '../core/options.js';
import { checkCacheName } from './cache-name.js';
import { LOAD_POLICY_NAMES } from './load-option-names.js';
import { checkOptionNames, type OptionNames } from './option-names.js';

/** Which cache a decorator uses. */
export interface CacheChoice {
  /** The name under which it was registered. Default: the one without a name. */
  readonly cache?: string;
}

/** The options of `@CacheAside`: those of `getOrLoad`, for every call of the method. */
export interface CacheAsideOptions<T = unknown> extends Omit<LoadOptions<T>, 'signal'>, CacheChoice {}

/** The options of `@CachePut`: those of `set`. */
export interface CachePutOptions<T = unknown> extends SetOptions<T>, CacheChoice {}

/** The options of `@CacheEvict`. */
export interface CacheEvictOptions extends CacheChoice {
  /**
   * When the store did not acknowledge the eviction: `'log'` it and return the method's result, which stands, or `'throw'`
   * the `CacheEvictionError`. Default `'log'`.
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

const CHOICE: OptionNames<CacheChoice> = { cache: true };
const EVICT_NAMES: OptionNames<CacheEvictOptions> = { onEvictError: true, ...CHOICE };
const PUT_NAMES: OptionNames<CachePutOptions> = { ttl: true, ttlJitter: true, codec: true, ...CHOICE };
const LOCK_NAMES: OptionNames<WithLockOptions> = { lease: true, renew: true, wait: true, ...CHOICE };

/** The options of a load in a decorator; `@CacheResponse` has some more. */
export const CACHE_ASIDE_NAMES: OptionNames<CacheAsideOptions> = {
  ...LOAD_POLICY_NAMES,
  ttl: true,
  cacheIf: true,
  ...CHOICE,
};

/** @throws InvalidOptionError naming the option */
export function checkCacheAsideOptions<T>(
  given: Ttl<T> | CacheAsideOptions<T>,
): CheckedOptions<Ttl<T> | LoadOptions<T>> {
  const { cache, options } = split(given, CACHE_ASIDE_NAMES, '@CacheAside');
  resolveLoadOptions(options, DEFAULT_POLICY);
  return { cache, options };
}

/** @throws InvalidOptionError naming the option */
export function checkCachePutOptions<T>(given: Ttl<T> | CachePutOptions<T>): CheckedOptions<Ttl<T> | SetOptions<T>> {
  const { cache, options } = split(given, PUT_NAMES, '@CachePut');
  resolveLoadOptions(options, DEFAULT_POLICY);
  return { cache, options };
}

/** @throws InvalidOptionError naming the option */
export function checkCacheEvictOptions(given: CacheEvictOptions): CheckedOptions<Omit<CacheEvictOptions, 'cache'>> {
  const { cache, options } = split(objectOf(given, '@CacheEvict'), EVICT_NAMES, '@CacheEvict');
  const { onEvictError = 'log' } = options;
  if (onEvictError !== 'log' && onEvictError !== 'throw') {
    throw new InvalidOptionError('onEvictError', onEvictError, "'log' or 'throw'");
  }
  return { cache, options };
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
