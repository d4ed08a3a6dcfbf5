import { types } from 'node:util';

/**
 * Turns values into text and back. `decode(encode(value))` should equal `value`, or a hit differs from a miss.
 *
 * Both may throw: a value that can't be encoded is answered but not stored; a text that can't be decoded is a miss.
 */
export interface Codec {
  /** The text to store. */
  encode(value: unknown): string;
  /** The value that a stored text stands for. */
  decode(text: string): unknown;
}

/** The values outside JSON that stand for themselves when they are the whole value, by the texts they are stored as. */
const BESIDE_JSON = new Map<string, unknown>([
  ['undefined', undefined],
  ['NaN', Number.NaN],
  ['Infinity', Infinity],
  ['-Infinity', -Infinity],
  ['-0', -0],
]);

/**
 * JSON, and `undefined`, `NaN`, `±Infinity` and `-0` as whole values. As everywhere in JSON, a `Date` comes back as a text,
 * a class instance as a plain object, a `Map` inside of a value as `{}`, and `undefined` inside an object is left out: take
 * another codec for those. A whole value of which JSON keeps nothing (a `Map` or `Set`, an `Observable`, a generator, a
 * stream, a function) can't be encoded.
 */
export const jsonCodec: Codec = {
  encode(value) {
    if (value === undefined) return 'undefined';
    if (typeof value === 'number' && (!Number.isFinite(value) || Object.is(value, -0))) {
      return Object.is(value, -0) ? '-0' : String(value);
    }
    if (typeof value === 'object' && value !== null) checkJsonKeeps(value);
    const text: string | undefined = JSON.stringify(value);
    if (text === undefined) throw new TypeError(`A ${typeof value} can't be stored as JSON.`);
    return text;
  },
  decode(text) {
    // No JSON text is this short and starts with one of these letters but for `null`, `true`, `false` and numbers.
    if (text.length <= 9 && BESIDE_JSON.has(text)) return BESIDE_JSON.get(text);
    return JSON.parse(text);
  },
};

/** What has a `toJSON` says itself what is to be kept. */
function checkJsonKeeps(value: object): void {
  const what = emptyInJson(value);
  if (what === undefined || typeof (value as { toJSON?: unknown }).toJSON === 'function') return;
  throw new TypeError(`${what} can't be stored as JSON, which keeps nothing of it: take its values, or another codec.`);
}

function emptyInJson(value: object): string | undefined {
  if (types.isMap(value)) return 'A Map';
  if (types.isSet(value)) return 'A Set';
  if (types.isGeneratorObject(value)) return 'A generator';
  if (Symbol.asyncIterator in value) return 'An async iterable, such as a stream,';
  return isObservable(value) ? 'An Observable' : undefined;
}

/** As RxJS knows those of other packages: by a method that has either name, whether or not there is such a symbol yet. */
function isObservable(value: object): boolean {
  const { observable } = Symbol as { observable?: symbol };
  return '@@observable' in value || (observable !== undefined && observable in value);
}

/** @throws what the codec throws, and a TypeError when it gives no string: a promise of one can't be stored */
export function encodeWith(codec: Codec, value: unknown): string {
  const text: unknown = codec.encode(value);
  if (typeof text === 'string') return text;
  if (text instanceof Promise) text.catch(() => {});
  throw new TypeError("The codec's encode must return a string, and not a promise of one.");
}
