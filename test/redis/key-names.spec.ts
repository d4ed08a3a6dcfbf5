import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Command } from 'ioredis';
import { KeyNames } from '../../lib/redis/key-names.js';
import { AWKWARD_KEYS, LOOK_ALIKES } from '../conformance/awkward-keys.js';

const names = new KeyNames('shop');
const allNames = (key: string) => [...Object.values(names.cache(key)), ...Object.values(names.lock(key))];
const slot = (name: string) => new Command('get', [name]).getSlot();
/** The bytes that Redis gets. */
const bytes = (name: string) => Buffer.from(name).toString('latin1');

test('reads as documented', () => {
  expect(names.cache('user:1')).toEqual({
    value: 'shop:{user:1}',
    lock: 'shop:{user:1}:lock',
    outcome: 'shop:{user:1}:outcome',
  });
  expect(names.lock('user:1')).toEqual({ lock: 'shop:{user:1}:mutex', fence: 'shop:{user:1}:fence' });
  expect(names.channel('p1')).toBe('shop:wake:p1');
  expect(names.value('{a}%\ud800')).toBe('shop:{%7Ba%7D%25%uD800}');
});

test('puts all of a key into one slot (K2)', () => {
  const oneSlot = (key: string) => expect(new Set(allNames(key).map(slot)).size).toBe(1);
  AWKWARD_KEYS.forEach(oneSlot);
  fc.assert(fc.property(fc.string({ unit: 'binary', minLength: 1 }), oneSlot));
});

test('puts different keys into different slots', () => {
  expect(slot(names.value('a'))).not.toBe(slot(names.value('b')));
});

test('never gives two keys one name', () => {
  const keys = new Set([...AWKWARD_KEYS, ...LOOK_ALIKES]);
  const all = [...keys].flatMap(allNames).map(bytes);
  expect(new Set(all).size).toBe(all.length);

  const reserved = fc.string({ unit: fc.constantFrom('{', '}', '%', 'u', '7', 'B', 'D', '\ud800', '\udc00', ':lock') });
  fc.assert(
    fc.property(reserved, reserved, (a, b) => {
      fc.pre(a !== b);
      const namesOfA = allNames(a).map(bytes);
      expect(allNames(b).some((name) => namesOfA.includes(bytes(name)))).toBe(false);
    }),
  );
});
