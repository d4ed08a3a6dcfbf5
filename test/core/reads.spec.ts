import { expect, test } from '@jest/globals';
import { settle } from '../support/clock.js';
import { setUp } from './setting.js';

test('the reads of one tick are one command for every 500 keys, each key once', async () => {
  const { cache, store } = setUp();
  const keys = Array.from({ length: 1_201 }, (_, i) => `k${i}`);
  const values = Promise.all([...keys, ...keys].map((key) => cache.getOrLoad(key, () => key, '60s')));
  await settle();
  const reads = store.sent.filter(({ command }) => command === 'read').map(({ key }) => key.split(' '));
  expect(reads.map(({ length }) => length)).toEqual([500, 500, 201]);
  expect(new Set(reads.flat())).toEqual(new Set(keys));
  expect(await values).toEqual([...keys, ...keys]);
});
