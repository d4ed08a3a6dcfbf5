import { InvalidKeyError } from './errors.js';
import { composeKey, type KeyPart } from './keys.js';

/** A key that is defined in one place: called with what it is made of, it gives the key as every call takes it. */
export type DefinedKey<Args extends readonly unknown[]> = (...args: Args) => string;

/**
 * Defines a key once, for those who read and those who evict: a key function for the decorators, and by hand a function
 * that makes the key. Its keys are none of another name, and none that `composeKey` or a key function makes of parts.
 *
 * @param name tells it from other keys; two definitions of one name are one key
 * @param parts makes the rest of the key from the arguments; an empty array if there is only one such key
 * @throws InvalidKeyError here for a name that is no text, and from the key for parts that can't be some
 * @example
 * const productKey = defineKey('product', (id: string) => [id]);
 * // @CacheAside(productKey, '60s'), @CacheEvict(productKey), cache.evict(productKey('7'))
 */
export function defineKey<Args extends readonly unknown[]>(
  name: string,
  parts: (...args: Args) => readonly KeyPart[],
): DefinedKey<Args> {
  if (typeof name !== 'string' || name === '') throw new InvalidKeyError(name, 'The name of a key');
  if (typeof parts !== 'function') throw new InvalidKeyError(parts, `The parts of the key '${name}'`);
  // No part that `composeKey` writes has a `~` behind a text.
  const prefix = `${composeKey([name])}~`;
  const where = `What makes the parts of the key '${name}' returned what`;
  const defined: DefinedKey<Args> = (...args) => {
    const rest = parts(...args);
    if (Array.isArray(rest) && rest.length === 0) return prefix;
    if (!Array.isArray(rest)) throw new InvalidKeyError(rest, where);
    return prefix + composeKey(rest, where);
  };
  return Object.defineProperty(defined, 'name', { value: name });
}
