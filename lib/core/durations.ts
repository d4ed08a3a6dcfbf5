import { InvalidOptionError } from './errors.js';

/** The units a duration's text may have: milliseconds, seconds, minutes, hours, days. */
export type DurationUnit = 'ms' | 's' | 'm' | 'h' | 'd';

/**
 * A length of time: a number of milliseconds, or a text with its unit.
 *
 * @example `1500`, `'1500ms'`, `'60s'`, `'1.5h'`, `'7d'`, and `Infinity` where a value may live without end
 */
export type Duration = number | `${number}${DurationUnit}`;

const MILLISECONDS: Record<DurationUnit, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const TEXT = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;

/** The smallest and largest number of milliseconds an option takes. */
export interface DurationBounds {
  readonly min?: number;
  readonly max?: number;
}

/** `setTimeout`'s longest delay, a signed 32-bit integer, 24.8 days: the bound of whatever this process has to wait for itself. */
export const LONGEST_WAIT = 2 ** 31 - 1;

/** As good as for ever, where a number is needed that can be added to a store's time: 3,000 years. What is longer has no end. */
export const FOR_EVER = 1e14;

/**
 * Reads a duration.
 *
 * @param option the option's name, for the error's message
 * @returns whole milliseconds, rounded up, or `Infinity`
 * @throws InvalidOptionError when it is no duration, or outside the bounds
 */
export function parseDuration(
  value: unknown,
  option: string,
  { min = 0, max = Infinity }: DurationBounds = {},
): number {
  const milliseconds = typeof value === 'number' ? value : fromText(value);
  if (milliseconds === undefined || Number.isNaN(milliseconds) || milliseconds < 0) {
    throw new InvalidOptionError(
      option,
      value,
      `a duration: milliseconds as a number (60000), or a text with a unit (ms, s, m, h, d), such as '60s'`,
    );
  }
  if (milliseconds < min || milliseconds > max) {
    throw new InvalidOptionError(option, value, `between ${min} ms and ${max} ms`);
  }
  return Math.ceil(milliseconds);
}

function fromText(value: unknown): number | undefined {
  const match = typeof value === 'string' ? TEXT.exec(value) : null;
  // Rounding to a nanosecond keeps '1.1s' at 1100 ms; the bare product is 1100.0000000000002, which rounds up to 1101.
  return match ? Number((Number(match[1]) * MILLISECONDS[match[2] as DurationUnit]).toFixed(6)) : undefined;
}
