import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import type { RedisStore } from '../../lib/redis/redis-store.js';
import { eventually } from '../support/eventually.js';
import { type RedisSentinel, startSentinel } from '../support/redis-sentinel.js';
import { startStore, untilListeningAgain } from './redis-stores.js';

let sentinel: RedisSentinel;
let store: RedisStore;
let n = 0;

beforeAll(async () => {
  sentinel = await startSentinel();
  store = await startStore({ connection: new Redis({ ...sentinel.options, lazyConnect: true }) });
});
afterAll(async () => {
  await store.close();
  await sentinel.stop();
});

async function leads(): Promise<boolean> {
  const lock = { kind: 'cache', key: 'k', token: `${store.process}#${++n}` } as const;
  const reply = await store.lead({ ...lock, lease: 1_000, follow: true });
  if (reply.is !== 'leading') return false;
  await store.end(lock);
  return true;
}

/** Its commands run on the server that the sentinels name. */
async function usesPrimary(): Promise<boolean> {
  const primary = await sentinel.primary();
  await primary.resetStats();
  return (await leads()) && ((await primary.commandStats())['set'] ?? 0) > 0;
}

test('goes on after a failover that leaves the old primary’s connections open (R5)', async () => {
  expect(await usesPrimary()).toBe(true);
  const listening = untilListeningAgain(store);
  await sentinel.failover();
  const start = performance.now();
  await eventually(leads);
  expect(performance.now() - start).toBeLessThan(2_000);
  expect(await usesPrimary()).toBe(true);
  await listening;
});

test('goes on after the primary was killed', async () => {
  const before = await sentinel.primary();
  const listening = untilListeningAgain(store);
  await before.kill();
  await eventually(async () => (await sentinel.primary()) !== before, { within: 20_000 });
  const start = performance.now();
  await eventually(leads);
  expect(performance.now() - start).toBeLessThan(2_000);
  await listening;
});
