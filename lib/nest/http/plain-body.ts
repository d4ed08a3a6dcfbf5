/** How exactly what is read back has to be what was stored. */
export type Exactness =
  /** As JSON: it will be sent as that, so a `Date` may be a text. */
  | 'as JSON'
  /** To those who will look at it: a `Date` must be one. */
  | 'itself';

/**
 * Why a body can't be stored, or `undefined` when it can: when what is read back is answered as the body itself would be.
 *
 * An instance of a class can't: a serializer outside may leave something out of it, such as a password, by what its class
 * says, and would find nothing to leave out of a plain copy. A `Date`, and whatever has a `toJSON` of its own, may be in it
 * if it will be sent as JSON.
 */
export function whyNotPlain(body: unknown, exactness: Exactness): string | undefined {
  if (typeof body === 'bigint' || typeof body === 'function' || typeof body === 'symbol') return `a ${typeof body}`;
  if (typeof body !== 'object' || body === null) return undefined;
  // Sent as what it is: a `Date` as JSON, where the text that is read back would be sent as a text.
  if (ArrayBuffer.isView(body) || body instanceof Date) return describe(body);
  return whyNotPlainIn(body, exactness, new Set());
}

function whyNotPlainIn(value: object, exactness: Exactness, seen: Set<object>): string | undefined {
  if (seen.has(value)) return undefined;
  seen.add(value);
  if (Symbol.asyncIterator in value) return 'a stream';
  if (!isPlain(value)) return exactness === 'as JSON' && hasOwnJson(value) ? undefined : describe(value);
  for (const inner of Object.values(value)) {
    const why = typeof inner === 'object' && inner !== null ? whyNotPlainIn(inner, exactness, seen) : undefined;
    if (why) return why;
  }
  return undefined;
}

function isPlain(value: object): boolean {
  if (Array.isArray(value)) return true;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || isNothing(prototype);
}

/** What Fastify's parser of queries has its objects inherit from, instead of `null`, for speed. */
function isNothing(prototype: object): boolean {
  return Object.getPrototypeOf(prototype) === null && Reflect.ownKeys(prototype).length === 0;
}

function hasOwnJson(value: object): boolean {
  return typeof (value as { toJSON?: unknown }).toJSON === 'function';
}

function describe(value: object): string {
  return `an instance of ${value.constructor?.name || 'a class'}`;
}
