import { type Codec, jsonCodec } from './codec.js';
import { type Duration, LONGEST_WAIT, parseDuration } from './durations.js';
import { InvalidOptionError } from './errors.js';
import type { StampedeLogger } from './logger.js';
import type { NearOptions } from './near-options.js';
import { checkOptionNames, LOAD_POLICY_NAMES, type OptionNames } from './option-names.js';
import type { ProfileName } from './profile-names.js';
import { isProfileName, type Profiles, profileOf } from './profiles.js';
import type { Provenance } from './provenance.js';

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

/** The defaults of every option above; a test holds the README against them. */
export const DEFAULTS = {
  namespace: 'stampede',
  commandTimeout: 500,
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
  | 'replicas'
  | 'readFrom'
  | Exclude<keyof CacheOptions, 'defaults' | 'profiles' | 'logger'>,
  unknown
>;

export interface ResolvedPolicy {
  readonly lease: number;
  readonly wait: number;
  readonly maxLoad: number;
  readonly onWaitTimeout: 'throw' | 'load';
  readonly shareErrors: boolean;
  readonly ttlJitter: number;
  readonly isolate: Isolation;
  readonly codec: Codec;
  readonly abortWhenUnused: boolean;
  readonly staleWhileRevalidate: number;
  readonly staleIfError: number;
  readonly errorHoldOff: number;
  /** `Infinity` when it is off. */
  readonly softTimeout: number;
  /** XFetch's beta; 0 when it is off. */
  readonly earlyRefresh: number;
  readonly refreshContext: 'none' | 'caller';
  readonly onRedisError: 'load' | 'throw';
  readonly near: boolean;
}

/** The defaults as a call sees them. */
export const DEFAULT_POLICY: ResolvedPolicy = { ...DEFAULTS, softTimeout: Number.POSITIVE_INFINITY, earlyRefresh: 0 };

export interface ResolvedLoadOptions extends ResolvedPolicy {
  /** Milliseconds, or the user's function. */
  readonly ttl: number | ((value: unknown) => unknown);
  readonly cacheIf: ((value: unknown) => unknown) | undefined;
  readonly signal: AbortSignal | undefined;
  /** Is told, just before the call is answered, where the value comes from. Such a call's entries tell their age. */
  readonly told?: ((provenance: Provenance) => void) | undefined;
  /** A value that is stored will not do: one is loaded in its place, once for all who ask for that meanwhile. */
  readonly reload?: boolean | undefined;
}

/** What holds for the calls of one cache: its defaults and, by their names, its profiles. */
export interface CachePolicy extends ResolvedPolicy {
  readonly profiles?: Profiles;
}

/** A shorter lease would end between two renewals whenever the event loop is busy. */
const SHORTEST_LEASE = 100;

/** @throws InvalidOptionError naming the option */
export function resolvePolicy(given: LoadPolicy, base: ResolvedPolicy = DEFAULT_POLICY): ResolvedPolicy {
  return {
    lease: durationOr(base.lease, given.lease, 'lease', SHORTEST_LEASE),
    wait: durationOr(base.wait, given.wait, 'wait', 0),
    maxLoad: durationOr(base.maxLoad, given.maxLoad, 'maxLoad', 1),
    onWaitTimeout: oneOf(base.onWaitTimeout, given.onWaitTimeout, 'onWaitTimeout', ['throw', 'load']),
    shareErrors: oneOf(base.shareErrors, given.shareErrors, 'shareErrors', [true, false]),
    ttlJitter: fractionOr(base.ttlJitter, given.ttlJitter),
    isolate: oneOf(base.isolate, given.isolate, 'isolate', ['none', 'decode', 'freeze']),
    codec: codecOr(base.codec, given.codec),
    abortWhenUnused: oneOf(base.abortWhenUnused, given.abortWhenUnused, 'abortWhenUnused', [true, false]),
    staleWhileRevalidate: windowOr(base.staleWhileRevalidate, given.staleWhileRevalidate, 'staleWhileRevalidate'),
    staleIfError: windowOr(base.staleIfError, given.staleIfError, 'staleIfError'),
    errorHoldOff: durationOr(base.errorHoldOff, given.errorHoldOff, 'errorHoldOff', 0),
    softTimeout: softTimeoutOr(base.softTimeout, given.softTimeout),
    earlyRefresh: betaOr(base.earlyRefresh, given.earlyRefresh),
    refreshContext: oneOf(base.refreshContext, given.refreshContext, 'refreshContext', ['none', 'caller']),
    onRedisError: oneOf(base.onRedisError, given.onRedisError, 'onRedisError', ['load', 'throw']),
    near: oneOf(base.near, given.near, 'near', [true, false]),
  };
}

const CALL_NAMES: OptionNames<ProfiledOptions> = {
  ...LOAD_POLICY_NAMES,
  ttl: true,
  cacheIf: true,
  signal: true,
  profile: true,
};

/**
 * The options of a call, over those of its cache.
 *
 * @throws InvalidOptionError naming the option
 */
export function resolveLoadOptions<T>(given: Caching<T> | SetCaching<T>, base: CachePolicy): ResolvedLoadOptions {
  if (typeof given !== 'object' || given === null) {
    if (typeof given === 'string' && isProfileName(given)) return profileOf(base.profiles, given);
    return withCall(base, ttlOf(given), undefined, undefined);
  }
  checkOptionNames(given, CALL_NAMES, 'this call');
  const { profile } = given as Partial<ProfiledOptions<T>>;
  return resolveOptions(given, profile === undefined ? base : profileOf(base.profiles, profile));
}

function resolveOptions<T>(
  given: Partial<LoadOptions<T>>,
  base: ResolvedPolicy & Partial<ResolvedLoadOptions>,
): ResolvedLoadOptions {
  const { cacheIf = base.cacheIf, signal } = given;
  if (cacheIf !== undefined && typeof cacheIf !== 'function') {
    throw new InvalidOptionError('cacheIf', cacheIf, 'a function of the value');
  }
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new InvalidOptionError('signal', signal, 'an AbortSignal');
  }
  return withCall(
    resolvePolicy(given, base),
    given.ttl === undefined && base.ttl !== undefined ? base.ttl : ttlOf(given.ttl),
    cacheIf as ResolvedLoadOptions['cacheIf'],
    signal,
  );
}

/** Written out, since every hit passes here, and spreading an object of this size takes microseconds. */
function withCall(
  policy: ResolvedPolicy,
  ttl: ResolvedLoadOptions['ttl'],
  cacheIf: ResolvedLoadOptions['cacheIf'],
  signal: AbortSignal | undefined,
): ResolvedLoadOptions {
  return {
    lease: policy.lease,
    wait: policy.wait,
    maxLoad: policy.maxLoad,
    onWaitTimeout: policy.onWaitTimeout,
    shareErrors: policy.shareErrors,
    ttlJitter: policy.ttlJitter,
    isolate: policy.isolate,
    codec: policy.codec,
    abortWhenUnused: policy.abortWhenUnused,
    staleWhileRevalidate: policy.staleWhileRevalidate,
    staleIfError: policy.staleIfError,
    errorHoldOff: policy.errorHoldOff,
    softTimeout: policy.softTimeout,
    earlyRefresh: policy.earlyRefresh,
    refreshContext: policy.refreshContext,
    onRedisError: policy.onRedisError,
    near: policy.near,
    ttl,
    cacheIf,
    signal,
  };
}

/** Checks the options of a whole cache that are durations. */
export function resolveCommandTimeout(options: CacheOptions): number {
  return durationOr(DEFAULTS.commandTimeout, options.commandTimeout, 'commandTimeout', 1);
}

export function resolveDrainTimeout(options: CacheOptions): number {
  return durationOr(DEFAULTS.drainTimeout, options.drainTimeout, 'drainTimeout', 0);
}

/** How many loaders may run at once; `Infinity` for no limit. */
export function resolveMaxConcurrentLoads({ maxConcurrentLoads = DEFAULTS.maxConcurrentLoads }: CacheOptions): number {
  if (Number.isSafeInteger(maxConcurrentLoads) && maxConcurrentLoads >= 0) {
    return maxConcurrentLoads === 0 ? Number.POSITIVE_INFINITY : maxConcurrentLoads;
  }
  throw new InvalidOptionError('maxConcurrentLoads', maxConcurrentLoads, 'a whole number, or 0 for no limit');
}

export function resolveOnBoot({ onBoot }: CacheOptions): 'degrade' | 'fail' {
  return oneOf(DEFAULTS.onBoot, onBoot, 'onBoot', ['degrade', 'fail']);
}

export function resolveRetryEvictions({ retryEvictions }: CacheOptions): boolean {
  return oneOf(DEFAULTS.retryEvictions, retryEvictions, 'retryEvictions', [true, false]);
}

/** Where reads go that may lag behind the primary. */
export type ReadFrom = 'primary' | 'replica';

/** How many replicas must have a write from outside of a load, or a lock, before it counts. */
export function resolveReplicas(replicas: unknown = DEFAULTS.replicas): number {
  if (typeof replicas === 'number' && Number.isSafeInteger(replicas) && replicas >= 0) return replicas;
  throw new InvalidOptionError('replicas', replicas, 'a whole number: how many must confirm, or 0 for none');
}

export function resolveReadFrom(readFrom: unknown): ReadFrom {
  return oneOf(DEFAULTS.readFrom, readFrom, 'readFrom', ['primary', 'replica']);
}

/** A namespace is the start of keys whose hash tag begins with the first brace, so it has none. */
export function resolveNamespace(namespace: unknown = DEFAULTS.namespace): string {
  if (typeof namespace === 'string' && /^[^{}\s]+$/.test(namespace)) return namespace;
  throw new InvalidOptionError('namespace', namespace, "a text without braces and white space, such as 'shop'");
}

/** Milliseconds of a `ttl` that isn't a function. */
function ttlOf<T>(ttl: Ttl<T> | unknown): number | ((value: unknown) => unknown) {
  return typeof ttl === 'function' ? (ttl as (value: unknown) => unknown) : parseDuration(ttl, 'ttl');
}

function durationOr(base: number, given: unknown, option: string, min: number): number {
  return given === undefined ? base : parseDuration(given, option, { min, max: LONGEST_WAIT });
}

/** The store keeps a window, not this process, so that it may be as long as one likes. */
function windowOr(base: number, given: unknown, option: string): number {
  return given === undefined ? base : parseDuration(given, option);
}

function softTimeoutOr(base: number, given: unknown): number {
  return given === false ? Number.POSITIVE_INFINITY : durationOr(base, given, 'softTimeout', 0);
}

function betaOr(base: number, given: unknown): number {
  if (given === undefined) return base;
  if (typeof given === 'boolean') return given ? 1 : 0;
  if (typeof given === 'number' && given >= 0 && given < Number.POSITIVE_INFINITY) return given;
  throw new InvalidOptionError('earlyRefresh', given, 'true, false, or the beta of XFetch as a number from 0');
}

function fractionOr(base: number, given: unknown): number {
  if (given === undefined) return base;
  if (typeof given === 'number' && given >= 0 && given <= 1) return given;
  throw new InvalidOptionError('ttlJitter', given, 'a fraction from 0 to 1');
}

function codecOr(base: Codec, given: unknown): Codec {
  if (given === undefined) return base;
  const { encode, decode } = Object(given) as Partial<Codec>;
  if (typeof encode === 'function' && typeof decode === 'function') return given as Codec;
  throw new InvalidOptionError('codec', given, 'an object with the functions encode(value) and decode(text)');
}

function oneOf<V extends string | boolean>(base: NoInfer<V>, given: unknown, option: string, allowed: readonly V[]): V {
  if (given === undefined) return base;
  if ((allowed as readonly unknown[]).includes(given)) return given as V;
  throw new InvalidOptionError(option, given, allowed.map((value) => JSON.stringify(value)).join(' or '));
}

/** Whether a call may be answered with a value that is no longer fresh, or looks at how fresh it is. */
export function looksAtAge(options: ResolvedPolicy): boolean {
  return options.staleWhileRevalidate > 0 || options.staleIfError > 0 || options.earlyRefresh > 0;
}

/** Whether a call needs to know how fresh a value is, be it only to keep it as long, or to tell. */
export function needsAge(options: ResolvedPolicy & Pick<ResolvedLoadOptions, 'told'>): boolean {
  return looksAtAge(options) || options.near || options.told !== undefined;
}
