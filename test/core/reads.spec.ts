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

test('while a read is under way, those of a tick leave at its end', async () => {
  const { cache, clock, store } = setUp();
  const keys = Array.from({ length: 30 }, (_, i) => `k${i}`);
  await Promise.all(keys.map((key) => cache.set(key, key, '60s')));
  const sizes = () => store.sent.map(({ key }) => key.split(' ').length);
  const ask = (some: string[]) => Promise.all(some.map((key) => cache.getOrLoad(key, () => key, '60s')));
  store.sent.length = 0;
  store.fails('read', { repliesAfter: 10 });
  const first = ask(keys.slice(0, 1));
  await settle();
  store.works();
  const others = ask(keys.slice(1));
  await settle();
  expect(sizes()).toEqual([1, 29]);
  expect(await others).toEqual(keys.slice(1));
  await clock.advance(10);
  expect(await first).toEqual(['k0']);
  // One that failed is not under way either.
  store.fails('read', 'rejects');
  await ask(keys.slice(0, 1));
  store.works();
  store.sent.length = 0;
  // The server has nothing to do: it begins with the first few.
  await ask(keys);
  expect(sizes()).toEqual([8, 16, 6]);
});
