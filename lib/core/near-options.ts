import { type Duration, LONGEST_WAIT, parseDuration } from './durations.js';
import { InvalidOptionError } from './errors.js';
import { checkOptionNames, type OptionNames } from './option-names.js';

/** How large the near cache is: values in this process, in front of those in Redis. */
export interface NearOptions {
  /** How many values it holds; the least recently used go first. */
  readonly max: number;
  /** How many characters of text it holds: the values' as the codec writes them, and the keys'. Default: no limit. */
  readonly maxSize?: number;
  /** The longest that a value is answered without asking Redis. Default: as long as it is fresh there. */
  readonly ttl?: Duration;
}

export interface ResolvedNear {
  readonly max: number;
  readonly maxSize: number | undefined;
  /** Milliseconds. */
  readonly ttl: number;
}

const NAMES: OptionNames<NearOptions> = { max: true, maxSize: true, ttl: true };

/**
 * @returns `undefined` when there is to be none
 * @throws InvalidOptionError naming the option
 */
export function resolveNear(given: unknown): ResolvedNear | undefined {
  if (given === undefined || given === false) return undefined;
  if (typeof given !== 'object' || given === null) {
    throw new InvalidOptionError('near', given, "false, or its size such as { max: 10_000, ttl: '60s' }");
  }
  checkOptionNames(given, NAMES, 'near');
  const { max, maxSize, ttl } = given as Partial<Record<string, unknown>>;
  return {
    max: count(max, 'near.max'),
    maxSize: maxSize === undefined ? undefined : count(maxSize, 'near.maxSize'),
    ttl: ttl === undefined ? Number.POSITIVE_INFINITY : parseDuration(ttl, 'near.ttl', { min: 1, max: LONGEST_WAIT }),
  };
}

function count(given: unknown, option: string): number {
  if (Number.isSafeInteger(given) && (given as number) > 0) return given as number;
  throw new InvalidOptionError(option, given, 'a whole number from 1');
}
