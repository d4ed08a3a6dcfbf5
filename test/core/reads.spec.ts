import { expect, test } from '@jest/globals';
import { settle } from '../support/clock.js';
import { setUp } from './setting.js';

test('the reads of one tick are few commands, the first ones small; in each a key stands once', async () => {
  const { cache, store } = setUp();
  const keys = Array.from({ length: 1_201 }, (_, i) => `k${i}`);
  const twice = keys.flatMap((key) => [key, key]);
  const values = Promise.all(twice.map((key) => cache.getOrLoad(key, () => key, '60s')));
  await settle();
  const reads = store.sent.filter(({ command }) => command === 'read').map(({ key }) => key.split(' '));
  expect(reads.map(({ length }) => length)).toEqual([8, 16, 32, 64, 128, 256, 500, 197]);
  for (const keys of reads) expect(new Set(keys).size).toBe(keys.length);
  expect(new Set(reads.flat())).toEqual(new Set(keys));
  expect(await values).toEqual(twice);
  // The next tick begins anew.
  store.sent.length = 0;
  await Promise.all(keys.slice(0, 10).map((key) => cache.getOrLoad(key, () => key, '60s')));
  expect(store.sent.map(({ key }) => key.split(' ').length)).toEqual([8, 2]);
});
