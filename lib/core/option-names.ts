import { inspect } from 'node:util';
import { InvalidOptionError } from './errors.js';

/** Every name that an interface of options has. A name that is missing, or too many, does not compile. */
export type OptionNames<Options> = Readonly<Record<keyof Options, true>>;

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
