/** The near caches of several processes, on real servers: who is told what, and what happens when nobody is. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { createStampede, type Stampede } from '../../lib/core/create.js';
import type { CacheEvent } from '../../lib/core/events.js';
import { silentLogger } from '../../lib/core/logger.js';
import type { RedisStore, RedisStoreOptions } from '../../lib/redis/redis-store.js';
import { AWKWARD_KEYS, LOOK_ALIKES } from '../conformance/awkward-keys.js';
import { eventually } from '../support/eventually.js';
import { type FaultProxy, startProxy } from '../support/fault-proxy.js';
import { type RedisCluster, startCluster } from '../support/redis-cluster.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { newStore } from './redis-stores.js';

interface Process extends Stampede {
  readonly near: () => number;
  ask(key: string): Promise<number>;
}

let redis: RedisServer;
let proxy: FaultProxy;
/** What a loader gives: the source. */
let version = 0;
const open: Stampede[] = [];

beforeAll(async () => {
  redis = await startRedis({ users: USERS.join('\n') });
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((process) => process.close()));
  await proxy?.stop();
});
afterAll(() => redis.stop());

const USERS = [
  'user default on nopass ~* &* +@all',
  'user wakeonly on >x ~* resetchannels &test:wake:* +@all',
  'user least on >x resetkeys ~test:* resetchannels &test:* -@all +@connection +info +time +get +mget +set +del +append +pttl +pexpire +exists +eval +evalsha +publish +subscribe +unsubscribe',
];

async function start(options: Partial<RedisStoreOptions> = {}): Promise<Process> {
  const store = newStore({ connection: redis.url, ...options });
  const stampede = createStampede({ store }, { near: { max: 100 }, commandTimeout: 1_000 });
  open.push(stampede);
  const events: CacheEvent[] = [];
  stampede.cache.events.subscribe((event) => events.push(event));
  await stampede.start();
  return {
    ...stampede,
    near: () => events.filter(({ type }) => type === 'near-hit').length,
    ask: (key) => stampede.cache.getOrLoad(key, () => version, '60s'),
  };
}

/** Asks until the near cache answers. */
async function untilNear(process: Process, key: string): Promise<void> {
  const before = process.near();
  await eventually(async () => {
    await process.ask(key);
    return process.near() > before;
  });
}

test('a near hit is no command; evict, expire and set are one message more, fills none', async () => {
  const [one, two] = [await start(), await start()];
  await untilNear(one, 'counted');
  await one.cache.set('learn', 1, '60s');
  await two.cache.evict('learn');
  const commandsOf = async (run: () => Promise<unknown>) => {
    await redis.resetStats();
    await run();
    const { ping: _, ...stats } = await redis.commandStats();
    return stats;
  };
  const asked = async () => {
    for (let i = 0; i < 100; i++) await one.ask('counted');
  };
  expect(await commandsOf(asked)).toEqual({});
  // The first time teaches the script to its connection.
  await one.cache.evict('learn');
  expect(await commandsOf(() => one.cache.evict('counted'))).toEqual({ evalsha: 1, get: 1, del: 1, publish: 1 });
  expect(await commandsOf(() => one.ask('counted'))).toEqual({
    ...{ evalsha: 2, mget: 1, get: 2, set: 2, del: 1 },
    // One to read, and one to say until when it is fresh.
    time: 2,
  });
  expect(await commandsOf(() => one.cache.expire('counted'))).toMatchObject({ evalsha: 1, publish: 1 });
  expect(await commandsOf(() => one.cache.set('counted', 1, '60s'))).toMatchObject({ evalsha: 2, publish: 1 });
});

describe.each([
  ['ioredis 6', () => new Redis(redis.port, { lazyConnect: true })],
  ['ioredis 5', () => new Redis5(redis.port, { lazyConnect: true })],
])('%s: what a process changes', (_, connection) => {
  test('is answered by itself at once, by others as soon as they are told', async () => {
    const [one, two] = [await start({ connection: connection() }), await start({ connection: connection() })];
    const changes = [
      () => two.cache.evict('key'),
      () => two.cache.expire('key'),
      () => two.cache.set('key', version, '60s'),
    ];
    for (let round = 0; round < 30; round++) {
      await untilNear(one, 'key');
      await untilNear(two, 'key');
      version += 1;
      await changes[round % changes.length]!();
      expect(await two.ask('key')).toBe(version);
      await eventually(async () => (await one.ask('key')) === version, { every: 1 });
    }
  });

  test('is trusted for longer than one heartbeat', async () => {
    const one = await start({ connection: connection() });
    await untilNear(one, 'long');
    const [before, began] = [one.near(), performance.now()];
    let asked = 0;
    // A machine that is too busy for a heartbeat a second may well read once more, now and then.
    await eventually(
      async () => {
        await one.ask('long');
        asked += 1;
        return performance.now() - began > 3_500;
      },
      { within: 10_000, every: 5 },
    );
    expect(one.near() - before).toBeGreaterThan(asked / 2);
  });
});

test('every key is told as it is', async () => {
  const store = newStore({ connection: redis.url }) as RedisStore;
  const told: string[] = [];
  let trusted = 0;
  store.onChange({ changed: (key) => told.push(key), listens: (for_) => (trusted = for_), deaf() {} });
  await store.start();
  expect(trusted).toBeGreaterThan(0);
  const keys = [...AWKWARD_KEYS, ...LOOK_ALIKES];
  for (const key of keys) await store.replace({ key, by: 'evict' });
  await eventually(() => told.length === keys.length);
  expect(told).toEqual(keys);
  await store.close();
});

test('a message reaches the processes on all nodes of a Cluster', async () => {
  const cluster: RedisCluster = await startCluster();
  const connection = () => new Cluster([...cluster.startupNodes], { lazyConnect: true });
  const [one, two, three] = [
    await start({ connection: connection() }),
    await start({ connection: connection() }),
    await start({ connection: connection() }),
  ];
  for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) {
    for (const process of [one, two, three]) await untilNear(process, key);
    version += 1;
    await two.cache.evict(key);
    expect(await two.ask(key)).toBe(version);
    for (const process of [one, three])
      await eventually(async () => (await process.ask(key)) === version, { every: 1 });
  }
  await Promise.all(open.splice(0).map((process) => process.close()));
  await cluster.stop();
}, 60_000);

describe('when changes are not told', () => {
  test('since the subscription was killed, nothing old is answered for long, and it comes back', async () => {
    const [one, two] = [await start(), await start()];
    for (let round = 0; round < 3; round++) {
      await untilNear(one, 'killed');
      version += 1;
      await Promise.all([redis.client().call('CLIENT', 'KILL', 'TYPE', 'pubsub'), two.cache.evict('killed')]);
      expect(await two.ask('killed')).toBe(version);
      await eventually(async () => (await one.ask('killed')) === version, { every: 1 });
    }
    await untilNear(one, 'killed');
  });

  test('since the subscription is open on one side only, nothing old is answered after two seconds', async () => {
    proxy = await startProxy(redis.port);
    const [one, two] = [await start({ connection: { port: proxy.port } }), await start()];
    await untilNear(one, 'half-open');
    let deaf = false;
    proxy.onRequest((request) => {
      if (!/\r\nping\r\n/i.test(request)) return 'pass';
      deaf = true;
      return 'dropReply';
    });
    await eventually(() => deaf);
    version += 1;
    await two.cache.evict('half-open');
    await two.ask('half-open');
    const began = performance.now();
    // It was not told, and can't know.
    const before = one.near();
    expect(await one.ask('half-open')).toBe(version - 1);
    expect(one.near()).toBe(before + 1);
    await eventually(async () => (await one.ask('half-open')) === version, { every: 5 });
    expect(performance.now() - began).toBeLessThan(4_000);
    proxy.onRequest(undefined);
    await untilNear(one, 'half-open');
  });

  test('since nothing comes through at all, nothing old is answered after two seconds, but what the loader gives', async () => {
    proxy = await startProxy(redis.port);
    const [one, two] = [await start({ connection: { port: proxy.port } }), await start()];
    await untilNear(one, 'cut-off');
    proxy.hold();
    version += 1;
    await two.cache.evict('cut-off');
    await eventually(async () => (await one.ask('cut-off')) === version, { every: 5 });
    proxy.release();
    await untilNear(one, 'cut-off');
  });

  test('since Redis restarts, loaders answer, and the near cache comes back with it', async () => {
    const own = await startRedis();
    const one = await start({ connection: own.url });
    await untilNear(one, 'restart');
    version += 1;
    await own.kill();
    await eventually(async () => (await one.ask('restart')) === version);
    await own.restart();
    await untilNear(one, 'restart');
    await Promise.all(open.splice(0).map((process) => process.close()));
    await own.stop();
  }, 20_000);
});

describe('a user', () => {
  test('without the right to the channel of near caches has none, is woken all the same, and warned once', async () => {
    const warnings: string[] = [];
    const connection = { port: redis.port, username: 'wakeonly', password: 'x' };
    const logger = { ...silentLogger, warn: (message: string) => warnings.push(message) };
    const [one, two] = [await start({ connection, logger }), await start()];
    for (let i = 0; i < 5; i++) await one.ask('denied');
    expect(one.near()).toBe(0);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(/'near' is off.*&test:\*/);
    const lock = { kind: 'cache', key: 'locked', token: 'other#1', lease: 5_000, follow: true } as const;
    const store = newStore({ connection, logger: silentLogger });
    await store.start();
    await store.lead(lock);
    const reply = await store.lead({ ...lock, token: `${store.process}#1` });
    await store.close();
    expect(reply).toMatchObject({ is: 'waiting', wakes: true });
    // It can't tell the others what it evicts, but it evicts.
    await untilNear(two, 'denied');
    await one.cache.evict('denied');
    version += 1;
    expect(await one.ask('denied')).toBe(version);
  });

  test('with the least rights has one', async () => {
    const one = await start({ connection: { port: redis.port, username: 'least', password: 'x' } });
    await untilNear(one, 'least');
    version += 1;
    await one.cache.evict('least');
    expect(await one.ask('least')).toBe(version);
  });
});
