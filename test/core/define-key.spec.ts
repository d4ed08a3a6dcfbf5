import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { defineKey } from '../../lib/core/define-key.js';
import { composeKey, type KeyPart } from '../../lib/core/keys.js';

const part = fc.oneof(
  fc.string(),
  fc.constantFrom('', '~', 'a~', '~a', 'a:b', '%7E'),
  fc.double(),
  fc.bigInt(),
  fc.boolean(),
  fc.constantFrom(null, undefined),
) as fc.Arbitrary<KeyPart>;
const name = fc.oneof(fc.string({ minLength: 1 }), fc.constantFrom('~', 'a~', '~a', 'a:b', '%'));
const keyOf = (name: string, parts: readonly KeyPart[]) => defineKey(name, () => parts)();

describe('a defined key', () => {
  it('says its name and its parts', () => {
    const productKey = defineKey('product', (id: string, locale?: string) => [id, locale]);
    expect(productKey('7', 'en')).toBe('product~7:en');
    expect(productKey('7')).toBe('product~7:~undefined');
    expect(defineKey('all products', () => [])()).toBe('all products~');
    expect(productKey.name).toBe('product');
  });

  it('is another for each name and each parts', () => {
    fc.assert(
      fc.property(name, fc.array(part), name, fc.array(part), (name, parts, otherName, otherParts) => {
        const same = name === otherName && fc.stringify(parts) === fc.stringify(otherParts);
        expect(keyOf(name, parts) === keyOf(otherName, otherParts)).toBe(same);
      }),
    );
    expect(keyOf('a', ['b'])).not.toBe(keyOf('a:b', []));
    expect(keyOf('a', [''])).not.toBe(keyOf('a', []));
  });

  it('is none that is composed of parts', () => {
    fc.assert(
      fc.property(name, fc.array(part), fc.array(part, { minLength: 1 }), (name, parts, others) => {
        expect(keyOf(name, parts)).not.toBe(composeKey(others));
        expect(keyOf(name, parts)).not.toBe(composeKey([name, ...parts]));
      }),
    );
  });

  it.each([[''], [7], [undefined], [null]])('has no name such as %p', (name) => {
    expect(() => defineKey(name as string, () => [])).toThrow(/^The name of a key must be a non-empty string/);
  });

  it.each([['7'], [undefined], [Promise.resolve([])], [[{}]], [[['7']]]])('is not made of %p', (parts) => {
    const key = defineKey('product', () => parts as never);
    expect(key).toThrow(expect.objectContaining({ name: 'InvalidKeyError' }));
    expect(key).toThrow(/^What makes the parts of the key 'product' returned/);
  });

  it('needs a function', () => {
    expect(() => defineKey('product', ['7'] as never)).toThrow(/^The parts of the key 'product'/);
  });
});
