import { InvalidKeyError } from './errors.js';

/** What a key may be put together from. */
export type KeyPart = string | number | bigint | boolean | null | undefined;

/**
 * A key, or its parts. Parts are joined so that no two different arrays give one key: `['a:b', 'c']` is not
 * `['a', 'b:c']`, `[1]` is not `['1']`, and `[undefined]` is none of `[null]` and `['undefined']`.
 */
export type Key = string | readonly KeyPart[];

const RESERVED: Record<string, string> = { '%': '%25', ':': '%3A', '~': '%7E' };

/**
 * The key as one string.
 *
 * @param where says in the error whose key it is
 * @throws InvalidKeyError when it is empty or isn't a key
 */
export function composeKey(key: Key, where?: string): string {
  if (typeof key === 'string' && key !== '') return key;
  if (Array.isArray(key) && key.length > 0) return key.map((part) => composePart(part, key, where)).join(':');
  throw new InvalidKeyError(key, where);
}

/** A text stands for itself, `%`, `:` and `~` escaped; everything else carries a `~`, which no text starts with. */
function composePart(part: unknown, key: unknown, where: string | undefined): string {
  if (typeof part === 'string')
    return part === '' ? '~' : part.replace(/[%:~]/g, (reserved) => RESERVED[reserved] ?? '');
  if (typeof part === 'bigint') return `~${part}n`;
  if (part === null || part === undefined || typeof part === 'number' || typeof part === 'boolean') return `~${part}`;
  throw new InvalidKeyError(key, where);
}
