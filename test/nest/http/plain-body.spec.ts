import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { whyNotPlain } from '../../../lib/nest/http/plain-body.js';

class Made {
  a = 1;
}
class List extends Array<number> {}

describe('a body', () => {
  it('that JSON gives back as it was is plain', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false } as never), (body) => {
        expect(whyNotPlain(body)).toBeUndefined();
        expect(whyNotPlain({ none: undefined, inner: [body] })).toBeUndefined();
      }),
    );
    expect(whyNotPlain(undefined)).toBeUndefined();
    expect(whyNotPlain(Object.assign(Object.create(null), { a: 1 }))).toBeUndefined();
  });

  it.each<[unknown, string]>([
    [new Date(0), 'an instance of Date'],
    [new Map(), 'an instance of Map'],
    [new Set(), 'an instance of Set'],
    [new Made(), 'an instance of Made'],
    [new List(), 'an instance of List'],
    [Object.assign(new Made(), { toJSON: () => ({}) }), 'an instance of Made'],
    [{ toJSON: () => ({}) }, 'an object that has a toJSON'],
    [Object.assign([1], { toJSON: () => ({}) }), 'an object that has a toJSON'],
    [new Uint8Array(1), 'an instance of Uint8Array'],
    [Object.create(new Made()), 'an instance of Made'],
    [{ [Symbol('hidden')]: 1 }, 'an object that has symbols for names'],
    [[undefined], 'an array that has undefined in it'],
    [Number.NaN, 'the number NaN'],
    [-Infinity, 'the number -Infinity'],
    [1n, 'a bigint'],
    [() => {}, 'a function'],
    [Symbol('s'), 'a symbol'],
  ])('%p is not, and neither is what it is in', (value, why) => {
    for (const body of [value, [value], { a: [{ b: value }] }]) expect(whyNotPlain(body)).toBe(why);
  });
});
