import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { InvalidKeyError } from '../../lib/core/errors.js';
import { composeKey, type KeyPart } from '../../lib/core/keys.js';
import { setUp } from './setting.js';

describe('keys', () => {
  test('a string is its own key', () => {
    for (const key of ['a', 'a:b', '~', '%3A', ' ', '{}']) expect(composeKey(key)).toBe(key);
  });

  test('K1: parts that look alike give different keys', () => {
    const parts: KeyPart[][] = [
      ['a:b', 'c'],
      ['a', 'b:c'],
      ['a', 'b', 'c'],
      ['a%3Ab', 'c'],
      [undefined],
      [null],
      ['undefined'],
      ['null'],
      [1],
      ['1'],
      [1n],
      ['1n'],
      [true],
      ['true'],
      [''],
      ['', ''],
      ['~'],
      ['%7E'],
      [Number.NaN],
      ['NaN'],
    ];
    expect(new Set(parts.map((part) => composeKey(part))).size).toBe(parts.length);
  });

  test('K1: no two different arrays give one key', () => {
    const part = fc.oneof(
      fc.string({ unit: fc.constantFrom('a', '1', ':', '%', '~', 'n', '3', 'A') }),
      fc.integer(),
      fc.bigInt(),
      fc.constantFrom<KeyPart>(true, false, null, undefined),
    );
    const parts = fc.array(part, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(parts, parts, (a, b) => {
        const same = a.length === b.length && a.every((inner, i) => Object.is(inner, b[i]));
        expect(composeKey(a) === composeKey(b)).toBe(same);
      }),
      {
        numRuns: 5_000,
        examples: [
          [
            ['a:b', 'c'],
            ['a', 'b:c'],
          ],
        ],
      },
    );
  });

  test.each([{}, 1, '', null, undefined, [], [{}], [[]], [() => 1], [Symbol('s')], true])(
    'K3: %p is a clear TypeError',
    (key) => {
      expect(() => composeKey(key as never, "find's key")).toThrow(InvalidKeyError);
      expect(() => composeKey(key as never, "find's key")).toThrow(TypeError);
      expect(() => composeKey(key as never, "find's key")).toThrow(/^find's key must be a non-empty string/);
    },
  );

  test.each([{}, 1, '', null, undefined, ['a']])(
    'K3: every method of the cache and of the locks rejects %p',
    async (key) => {
      const { cache, locks, store } = setUp();
      const bad = key as never;
      const calls = [
        () => cache.getOrLoad(bad, () => 1, '60s'),
        () => cache.get(bad),
        () => cache.has(bad),
        () => cache.set(bad, 1, '60s'),
        () => cache.evict([bad]),
        () => cache.expire(bad),
        () => locks.acquire(bad),
        () => locks.tryAcquire(bad),
        () => locks.withLock(bad, {}, () => 1),
      ];
      for (const call of calls) {
        const error = await call().then(
          () => undefined,
          (thrown) => thrown,
        );
        expect(error).toBeInstanceOf(InvalidKeyError);
        expect(error).toMatchObject({ code: 'INVALID_KEY', name: 'InvalidKeyError' });
      }
      expect(store.sent).toEqual([]);
    },
  );
});
