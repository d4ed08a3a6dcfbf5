import { inspect } from 'node:util';
import { InvalidOptionError } from './errors.js';
import type { LoadPolicy } from './options.js';

/** Every name that an interface of options has. A name that is missing, or too many, does not compile. */
export type OptionNames<Options> = Readonly<Record<keyof Options, true>>;

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

/**
 * Refuses options that nobody reads: a name that is misspelled would silently leave a default in force.
 *
 * @param where whose options they are, for the error's message
 * @throws InvalidOptionError naming the first option that there is not
 */
export function checkOptionNames<Options>(given: object, names: OptionNames<Options>, where: string): void {
  // Calls pass here with every object of options: a loop costs them less than an array of the names.
  for (const name in given) {
    if (Object.hasOwn(names, name)) continue;
    throw new InvalidOptionError(name, noOptionOf(where), `spelled as one of ${Object.keys(names).join(', ')}`);
  }
}

/** Shown in the place of the value, which might be a password. */
function noOptionOf(where: string): unknown {
  return { [inspect.custom]: () => `no option of ${where}` };
}
