import { InvalidOptionError } from '../core/errors.js';

/**
 * Checks the name of a cache, which becomes a part of its namespace.
 *
 * @param option how the user writes it
 * @returns the name; `undefined` for the default cache
 * @throws InvalidOptionError naming the option
 */
export function checkCacheName(name: unknown, option: string): string | undefined {
  if (name === undefined) return undefined;
  if (typeof name === 'string' && /^[^{}\s]+$/.test(name)) return name;
  throw new InvalidOptionError(option, name, "a text without braces and white space, such as 'sessions'");
}
