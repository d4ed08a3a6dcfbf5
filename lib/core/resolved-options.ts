import type { Codec } from './codec.js';
import { DEFAULTS, type Isolation } from './options.js';
import type { Provenance } from './provenance.js';

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

/** The profiles of a cache, by their names. */
export type Profiles = ReadonlyMap<string, ResolvedLoadOptions>;

/** What holds for the calls of one cache: its defaults and, by their names, its profiles. */
export interface CachePolicy extends ResolvedPolicy {
  readonly profiles?: Profiles;
}

/** Whether a call may be answered with a value that is no longer fresh, or looks at how fresh it is. */
export function looksAtAge(options: ResolvedPolicy): boolean {
  return options.staleWhileRevalidate > 0 || options.staleIfError > 0 || options.earlyRefresh > 0;
}

/** Whether no other call's answer will do: it can leave by itself, gets a copy of its own, or is told more than the value. */
export function needsOwnAnswer({ signal, told, isolate }: ResolvedLoadOptions): boolean {
  return signal !== undefined || told !== undefined || isolate !== 'none';
}

/** Whether a call needs to know how fresh a value is, be it only to keep it as long, or to tell. */
export function needsAge(options: ResolvedPolicy & Pick<ResolvedLoadOptions, 'told'>): boolean {
  return looksAtAge(options) || options.near || options.told !== undefined;
}
