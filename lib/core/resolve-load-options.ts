import { parseDuration } from './durations.js';
import { InvalidOptionError } from './errors.js';
import { checkOptionNames, type OptionNames } from './option-names.js';
import { betaOr, codecOr, durationOr, fractionOr, oneOf, softTimeoutOr, windowOr } from './option-values.js';
import type { Caching, LoadOptions, LoadPolicy, ProfiledOptions, SetCaching, Ttl } from './options.js';
import { isProfileName, profileOf } from './profiles.js';
import { type CachePolicy, DEFAULT_POLICY, type ResolvedLoadOptions, type ResolvedPolicy } from './resolved-options.js';

/** The options of a load that a cache may set for all. */
export const LOAD_POLICY_NAMES: OptionNames<LoadPolicy> = {
  lease: true,
  wait: true,
  maxLoad: true,
  onWaitTimeout: true,
  shareErrors: true,
  ttlJitter: true,
  isolate: true,
  codec: true,
  abortWhenUnused: true,
  staleWhileRevalidate: true,
  staleIfError: true,
  errorHoldOff: true,
  softTimeout: true,
  earlyRefresh: true,
  refreshContext: true,
  onRedisError: true,
  near: true,
};

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

/** Milliseconds of a `ttl` that isn't a function. */
function ttlOf<T>(ttl: Ttl<T> | unknown): number | ((value: unknown) => unknown) {
  return typeof ttl === 'function' ? (ttl as (value: unknown) => unknown) : parseDuration(ttl, 'ttl');
}
