/**
 * Why a body can't be stored, or `undefined` when it can: when what JSON gives back is what was there, for those who look at
 * it as well. Interceptors outside do:
 *
 * - a serializer leaves something out of an instance, such as a password, by what its class says, and would find nothing to
 *   leave out of a plain copy; a `toJSON` of the instance's own makes no difference to that;
 * - others call a `Date`'s methods, and would find a text.
 */
export function whyNotPlain(body: unknown): string | undefined {
  // Nothing at all is answered as nothing.
  return body === undefined ? undefined : whyNotPlainIn(body, new Set());
}

function whyNotPlainIn(value: unknown, seen: Set<object>): string | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : `the number ${value}`;
  if (typeof value === 'bigint' || typeof value === 'function' || typeof value === 'symbol') return `a ${typeof value}`;
  if (typeof value !== 'object' || value === null || seen.has(value)) return undefined;
  seen.add(value);
  if (Symbol.asyncIterator in value) return 'a stream';
  if (!isPlain(value)) return `an instance of ${value.constructor?.name || 'a class'}`;
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return 'an object that has a toJSON';
  if (Object.getOwnPropertySymbols(value).length > 0) return 'an object that has symbols for names';
  if (Array.isArray(value))
    return firstOf(value, (inner) => (inner === undefined ? NOTHING : whyNotPlainIn(inner, seen)));
  // JSON leaves out what is undefined, which reads the same.
  return firstOf(Object.values(value), (inner) => whyNotPlainIn(inner, seen));
}

const NOTHING = 'an array that has undefined in it';

function firstOf(values: readonly unknown[], why: (value: unknown) => string | undefined): string | undefined {
  for (const value of values) {
    const found = why(value);
    if (found !== undefined) return found;
  }
  return undefined;
}

function isPlain(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value);
  if (prototype === null) return true;
  if (Array.isArray(value)) return prototype === Array.prototype;
  return prototype === Object.prototype || isNothing(prototype);
}

/** What Fastify's parser of queries has its objects inherit from, instead of `null`, for speed. */
function isNothing(prototype: object): boolean {
  return Object.getPrototypeOf(prototype) === null && Reflect.ownKeys(prototype).length === 0;
}
