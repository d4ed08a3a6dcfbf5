import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { formatEntry } from '../../lib/core/entry.js';
import type { Store } from '../../lib/core/store.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { startStore } from './redis-stores.js';

let redis: RedisServer;
let leader: Store;
let follower: Store;
let key = '';
let n = 0;

beforeAll(async () => {
  redis = await startRedis();
  [leader, follower] = await Promise.all([
    startStore({ connection: redis.url }),
    startStore({ connection: redis.url }),
  ]);
});
afterAll(async () => {
  await Promise.all([leader.close(), follower.close()]);
  await redis.stop();
});
afterEach(() => redis.client().config('SET', 'maxmemory', '0'));

const fillUp = () => redis.client().config('SET', 'maxmemory', '1');
const lead = (store: Store, more = {}) =>
  store.lead({ kind: 'cache', key, token: `${store.process}#${n}`, lease: 10_000, follow: true, ...more });
const newLoad = async () => {
  key = `key${++n}`;
  await lead(leader);
  return { kind: 'cache', key, token: `${leader.process}#${n}` } as const;
};
const lockLeft = () => redis.client().exists(`test:{${key}}:lock`);
const entry = { text: formatEntry('1', 1), px: 60_000 };

test('a value that is not taken: says why, releases the lock, leaves the outcome to the followers', async () => {
  const load = await newLoad();
  await lead(follower);
  await fillUp();
  expect(await leader.end({ ...load, entry, outcome: 'v1' })).toEqual({
    is: 'held',
    stored: false,
    error: expect.stringMatching(/^OOM/),
  });
  expect(await lockLeft()).toBe(0);
  expect(await lead(follower, { outcomeSeen: '' })).toEqual({ is: 'outcome', text: 'v1' });
});

test('a follower that can not be registered waits by polling', async () => {
  await newLoad();
  await fillUp();
  expect(await lead(follower)).toMatchObject({ is: 'waiting', wakes: false });
});

test('no new lock: rejects, and leaves none', async () => {
  key = `key${++n}`;
  await fillUp();
  await expect(lead(leader)).rejects.toThrow('OOM');
  await expect(lead(leader, { kind: 'lock' })).rejects.toThrow('OOM');
  expect(await redis.client().keys(`test:{${key}}*`)).toEqual([]);
});

test('evicts and expires all the same', async () => {
  const load = await newLoad();
  await leader.end({ ...load, entry });
  await fillUp();
  await leader.replace({ key, by: 'expire' });
  expect((await leader.read([key])).texts[0]).toMatch(/^1;\d{13};/);
  await leader.replace({ key, by: 'evict' });
  expect((await leader.read([key])).texts).toEqual([undefined]);
});
