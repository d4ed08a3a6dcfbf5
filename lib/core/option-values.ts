import type { Codec } from './codec.js';
import { LONGEST_WAIT, parseDuration } from './durations.js';
import { InvalidOptionError } from './errors.js';

// Each reads the value that is given for one option; without one, that of `base` stands.

/** Whatever this process waits for itself. */
export function durationOr(base: number, given: unknown, option: string, min: number): number {
  return given === undefined ? base : parseDuration(given, option, { min, max: LONGEST_WAIT });
}

/** The store keeps a window, not this process, so that it may be as long as one likes. */
export function windowOr(base: number, given: unknown, option: string): number {
  return given === undefined ? base : parseDuration(given, option);
}

export function softTimeoutOr(base: number, given: unknown): number {
  return given === false ? Number.POSITIVE_INFINITY : durationOr(base, given, 'softTimeout', 0);
}

export function betaOr(base: number, given: unknown): number {
  if (given === undefined) return base;
  if (typeof given === 'boolean') return given ? 1 : 0;
  if (typeof given === 'number' && given >= 0 && given < Number.POSITIVE_INFINITY) return given;
  throw new InvalidOptionError('earlyRefresh', given, 'true, false, or the beta of XFetch as a number from 0');
}

export function fractionOr(base: number, given: unknown): number {
  if (given === undefined) return base;
  if (typeof given === 'number' && given >= 0 && given <= 1) return given;
  throw new InvalidOptionError('ttlJitter', given, 'a fraction from 0 to 1');
}

export function codecOr(base: Codec, given: unknown): Codec {
  if (given === undefined) return base;
  const { encode, decode } = Object(given) as Partial<Codec>;
  if (typeof encode === 'function' && typeof decode === 'function') return given as Codec;
  throw new InvalidOptionError('codec', given, 'an object with the functions encode(value) and decode(text)');
}

export function oneOf<V extends string | boolean>(
  base: NoInfer<V>,
  given: unknown,
  option: string,
  allowed: readonly V[],
): V {
  if (given === undefined) return base;
  if ((allowed as readonly unknown[]).includes(given)) return given as V;
  throw new InvalidOptionError(option, given, allowed.map((value) => JSON.stringify(value)).join(' or '));
}
