import type { Duration } from './durations.js';
import { InvalidOptionError } from './errors.js';
import { durationOr, oneOf } from './option-values.js';
import { type CacheOptions, DEFAULTS, type ReadFrom } from './options.js';

// What holds for a whole cache: the value that is given, checked, or the default.

export function resolveCommandTimeout(options: CacheOptions): number {
  return durationOr(DEFAULTS.commandTimeout, options.commandTimeout, 'commandTimeout', 1);
}

export function resolveConnectTimeout(connectTimeout: Duration | undefined): number {
  return durationOr(DEFAULTS.connectTimeout, connectTimeout, 'connectTimeout', 1);
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
