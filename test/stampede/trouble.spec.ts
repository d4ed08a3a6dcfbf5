import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type CacheEvent, createStampede, RedisStore, type Stampede } from 'nestjs-stampede-cache';
import { eventually } from '../support/eventually.js';
import { type FaultProxy, startProxy } from '../support/fault-proxy.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';

const logger = { log() {}, warn() {}, error() {} };

let redis: RedisServer;
let proxy: FaultProxy;
/** Behind the proxy. */
let slow: Stampede;
let quick: Stampede;
let events: CacheEvent[];

beforeEach(async () => {
  redis = await startRedis();
  proxy = await startProxy(redis.port);
  [slow, quick] = [proxy.port, redis.port].map((port) =>
    createStampede(
      { store: new RedisStore({ connection: { port }, namespace: 'trouble', commandTimeout: 2_000, logger }) },
      { commandTimeout: 2_000 },
    ),
  ) as [Stampede, Stampede];
  await Promise.all([slow.start(), quick.start()]);
  events = [];
  for (const { cache } of [slow, quick]) cache.events.subscribe((event) => events.push(event));
});
afterEach(async () => {
  await Promise.all([slow.close(), quick.close()]);
  await proxy.stop();
  await redis.stop();
});

function loads(): CacheEvent[] {
  return events.filter(({ type }) => type === 'load');
}

test('who loads without the lock, because Redis is too slow for the lease, keeps the proof rule', async () => {
  // Of a lock that takes this long to be told of, less than a third of its lease is left.
  proxy.delay({ min: 120, max: 120 });
  const options = { ttl: '60s', lease: 300 } as const;
  let source = 'old';
  const loader = async () => {
    const loaded = source;
    await sleep(500);
    return loaded;
  };
  const early = slow.cache.getOrLoad('key', loader, options);
  await eventually(() => loads()[0], { every: 5 });
  expect(loads()).toMatchObject([{ alone: true }]);
  source = 'new';
  await quick.cache.evict('key');
  // This one joins a load that began before the eviction.
  const late = slow.cache.getOrLoad('key', loader, options);
  expect(await early).toBe('old');
  expect(await late).toBe('new');
});

test('a full Redis takes no more followers: who comes then polls, and there is one load', async () => {
  const loader = async () => {
    await sleep(600);
    return 'x';
  };
  const led = quick.cache.getOrLoad('key', loader, '60s');
  await eventually(() => loads()[0], { every: 5 });
  await redis.client().config('SET', 'maxmemory', '1mb', 'maxmemory-policy', 'noeviction');
  const followed = slow.cache.getOrLoad('key', loader, '60s');
  await eventually(() => events.some(({ type }) => type === 'wait'), { every: 5 });
  expect(await redis.client().get('trouble:{key}:lock')).not.toContain(',');
  await redis.client().config('SET', 'maxmemory', '0');
  expect(await Promise.all([led, followed])).toEqual(['x', 'x']);
  expect(loads()).toHaveLength(1);
});

test('Redis freezes while processes wait for a load: they notice, load by themselves, and all is well afterwards', async () => {
  const led = quick.cache.getOrLoad('key', () => sleep(3_000), '60s');
  await eventually(() => loads()[0], { every: 5 });
  const followers = await Promise.all(
    [1, 2].map(async () => {
      const store = new RedisStore({ connection: redis.url, namespace: 'trouble', commandTimeout: 500, logger });
      const follower = createStampede({ store });
      await follower.start();
      return follower;
    }),
  );
  try {
    const calls = followers.flatMap(({ cache }) =>
      Array.from({ length: 20 }, () => cache.getOrLoad('key', () => sleep(100).then(() => 'own'), '60s')),
    );
    await sleep(300);
    redis.freeze();
    const frozenAt = performance.now();
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['own']));
    // 550 ms and the load; the rest is for a busy machine.
    expect(performance.now() - frozenAt).toBeLessThan(650 + 1_000);
    redis.thaw();
    await quick.cache.evict('key');
    await eventually(async () => {
      await followers[0]!.cache.getOrLoad('key', () => 'new', '60s');
      return followers[1]!.cache.get('key');
    });
  } finally {
    redis.thaw();
    await Promise.all(followers.map((follower) => follower.close()));
    await led;
  }
});
