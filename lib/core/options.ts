import { type Codec, jsonCodec } from './codec.js';
import type { Duration } from './durations.js';
import type { StampedeLogger } from './logger.js';
import type { NearOptions } from './near-options.js';
import type { ProfileName } from './profile-names.js';

/** How long a value is fresh: a duration, or a function of the value. `0` stores nothing, `Infinity` never expires. */
export type Ttl<T> = Duration | ((value: T) => Duration);

/**
 * What callers that share one answer get: one object (`none`), a copy of their own (`decode`), or one deep-frozen object
 * (`freeze`); the same whether it was found or loaded.
 */
export type Isolation = 'none' | 'decode' | 'freeze';

/** Options that a module sets for all its calls, and any call may override. Durations are milliseconds or `'60s'`. */
export interface LoadPolicy {
  /** How long the lock lives without renewal; renewed every third of it while a loader runs. Default 5 s. */
  readonly lease?: Duration;
  /** How long a caller waits for another's load, from its own start. Default 30 s. */
  readonly wait?: Duration;
  /** How long a load may take; then its signal is aborted. Default 30 s. */
  readonly maxLoad?: Duration;
  /** At the end of `wait`: a `CacheWaitTimeoutError`, or one load of its own a process at a time, not stored. Default `'throw'`. */
  readonly onWaitTimeout?: 'throw' | 'load';
  /** Whether followers in other processes get the error of the load that they waited for; otherwise they load. Default true. */
  readonly shareErrors?: boolean;
  /** The part of `ttl` by which it is shortened at random, 0 to 1, so that values stored together expire apart. Default 0. */
  readonly ttlJitter?: number;
  /** Whether callers share one object. Default `'none'`: treat what you get as read-only. */
  readonly isolate?: Isolation;
  /** Turns values into text and back. Default: JSON. */
  readonly codec?: Codec;
  /** Whether to abort the loader when nobody in its process waits for it any more. Default false: the value is worth storing. */
  readonly abortWhenUnused?: boolean;
  /** How long after `ttl` the old value is answered at once, while one call in all processes loads in the background. Default 0. */
  readonly staleWhileRevalidate?: Duration;
  /** How long after `ttl` the old value is answered when the load fails. Default 0. */
  readonly staleIfError?: Duration;
  /** How long after a failed load the old value is answered without trying again, in all processes. Default 1 s. */
  readonly errorHoldOff?: Duration;
  /** With an old value at hand (`staleIfError`): how long to wait for the loader before that is answered. Default: off. */
  readonly softTimeout?: Duration | false;
  /**
   * Whether to load, now and then and in the background, before the value expires: the likelier the closer its end is and
   * the longer a load takes (XFetch; Vattani, Chierichetti, Lowenstein: Optimal Probabilistic Cache Stampede Prevention,
   * VLDB 2015). A number is its beta; `true` is 1. Default false.
   */
  readonly earlyRefresh?: boolean | number;
  /** Whose AsyncLocalStorage context background loads run in: nobody's, or that of the caller that caused it. Default `'none'`. */
  readonly refreshContext?: 'none' | 'caller';
  /** When Redis is away: let the loader answer, or throw a `CacheUnavailableError`. Default `'load'`. */
  readonly onRedisError?: 'load' | 'throw';
  /** Whether the cache's near cache may answer. Default true, where the cache has one. */
  readonly near?: boolean;
}

/** The options of one call, or of one decorated method. */
export interface LoadOptions<T = unknown> extends LoadPolicy {
  /** How long the value is fresh. */
  readonly ttl: Ttl<T>;
  /** Whether to store this value. Callers get it either way. */
  readonly cacheIf?: (value: T) => boolean;
  /** Ends this caller's wait; the load goes on. */
  readonly signal?: AbortSignal;
}

/** The options of one call: those of a profile, and others in the place of some. */
export interface ProfiledOptions<T = unknown> extends Partial<LoadOptions<T>> {
  /** One of the cache's `profiles`. */
  readonly profile: ProfileName;
}

/** What a call says of how its value is kept: a `ttl`, the name of a profile, or options. */
export type Caching<T> = Ttl<T> | ProfileName | LoadOptions<T> | ProfiledOptions<T>;

/** The options of a profile: those of a call, for all who name it. */
export type CacheProfile = Omit<LoadOptions, 'signal'>;

/** The options of `set`. */
export type SetOptions<T = unknown> = Pick<LoadOptions<T>, 'ttl' | 'ttlJitter' | 'codec'>;

/** What a `set` says of how its value is kept: a `ttl`, the name of a profile, or options. */
export type SetCaching<T> =
  | Ttl<T>
  | ProfileName
  | SetOptions<T>
  | (Partial<SetOptions<T>> & Pick<ProfiledOptions<T>, 'profile'>);

/** What holds for a whole cache, beside the defaults of its calls. */
export interface CacheOptions {
  /** How long a command may go unanswered before it counts as failed. Default 500 ms. */
  readonly commandTimeout?: Duration;
  /** How long closing waits for running loads before it aborts them. Default 5 s. */
  readonly drainTimeout?: Duration;
  /** Defaults for every call. */
  readonly defaults?: LoadPolicy;
  /** Keeps values in this process as well, as long as they are fresh in Redis and nobody changes them. Default false. */
  readonly near?: NearOptions | false;
  /** Options of calls that belong together, by a name that calls give in the place of a `ttl`. */
  readonly profiles?: { readonly [Name in ProfileName]?: CacheProfile };
  /** How many loaders may run at once in this process; others wait. 0 is no limit. Default 0. */
  readonly maxConcurrentLoads?: number;
  /** Whether an eviction that did not reach Redis is made up for; until then nothing that is stored for its key is answered here. Default true. */
  readonly retryEvictions?: boolean;
  /** When the store isn't ready at the start: go on without it until it is, or fail the start. Default `'degrade'`. */
  readonly onBoot?: 'degrade' | 'fail';
  /** Where warnings go. Default: nowhere; the Nest module gives Nest's logger. */
  readonly logger?: StampedeLogger;
}

/** Where reads go that may lag behind the primary. */
export type ReadFrom = 'primary' | 'replica';

/** The defaults of every option above, and of a store's; a test holds the README against them. */
export const DEFAULTS = {
  namespace: 'stampede',
  commandTimeout: 500,
  connectTimeout: 2_000,
  drainTimeout: 5_000,
  lease: 5_000,
  wait: 30_000,
  maxLoad: 30_000,
  onWaitTimeout: 'throw',
  shareErrors: true,
  ttlJitter: 0,
  isolate: 'none',
  codec: jsonCodec,
  abortWhenUnused: false,
  staleWhileRevalidate: 0,
  staleIfError: 0,
  errorHoldOff: 1_000,
  softTimeout: false,
  earlyRefresh: false,
  refreshContext: 'none',
  onRedisError: 'load',
  near: false,
  maxConcurrentLoads: 0,
  retryEvictions: true,
  onBoot: 'degrade',
  replicas: 0,
  readFrom: 'primary',
} as const satisfies Record<
  | keyof LoadPolicy
  | 'namespace'
  | 'connectTimeout'
  | 'replicas'
  | 'readFrom'
  | Exclude<keyof CacheOptions, 'defaults' | 'profiles' | 'logger'>,
  unknown
>;
