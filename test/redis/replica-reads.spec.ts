/** `readFrom: 'replica'`. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { createStampede, type Stampede } from '../../lib/core/create.js';
import { InvalidOptionError } from '../../lib/core/errors.js';
import type { RedisStoreOptions } from '../../lib/redis/redis-store.js';
import { eventually } from '../support/eventually.js';
import { type RedisCluster, startCluster } from '../support/redis-cluster.js';
import { type RedisSentinel, startSentinel } from '../support/redis-sentinel.js';
import type { RedisServer } from '../support/redis-server.js';
import { newStore } from './redis-stores.js';

const COMMAND_TIMEOUT = 1_000;
const open: Stampede[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

async function start(
  connection: RedisStoreOptions['connection'],
  readFrom: 'primary' | 'replica' = 'replica',
): Promise<Stampede['cache']> {
  const store = newStore({ connection, readFrom, commandTimeout: COMMAND_TIMEOUT });
  const stampede = createStampede({ store }, { commandTimeout: COMMAND_TIMEOUT });
  open.push(stampede);
  await stampede.start();
  return stampede.cache;
}

const found = () => 'loaded';
const gets = async (server: RedisServer) => {
  const { get = 0, mget = 0 } = await server.commandStats();
  return get + mget;
};

describe('Sentinel', () => {
  let sentinel: RedisSentinel;
  let primary: RedisServer;
  let replica: RedisServer;
  beforeAll(async () => {
    sentinel = await startSentinel();
    primary = await sentinel.primary();
    replica = sentinel.servers.find((each) => each !== primary) as RedisServer;
  });
  afterAll(() => sentinel.stop());
  afterEach(() => replica.thaw());
  const connection = () => new Redis({ ...sentinel.options, lazyConnect: true });

  /** Until its reads reach the replica. */
  async function untilReplicaAnswers(cache: Stampede['cache']): Promise<void> {
    await cache.set('ready', 1, '60s');
    await eventually(async () => {
      await replica.resetStats();
      await cache.getOrLoad('ready', found, '60s');
      return (await gets(replica)) > 0;
    });
  }

  test('getOrLoad looks at the replica; get and has, and all else, at the primary', async () => {
    const cache = await start(connection());
    await untilReplicaAnswers(cache);
    await cache.set('key', 'stored', '60s');
    await eventually(() => replica.client().exists('test:{key}'));
    await Promise.all([primary, replica].map((each) => each.resetStats()));
    expect(await cache.getOrLoad('key', found, '60s')).toBe('stored');
    expect([await gets(primary), await gets(replica)]).toEqual([0, 1]);
    expect(await cache.get('key')).toBe('stored');
    expect(await cache.has('key')).toBe(true);
    expect(await gets(replica)).toBe(1);
  });

  test('a replica that lags makes no load: the primary rechecks', async () => {
    const cache = await start(connection());
    await untilReplicaAnswers(cache);
    await cache.set('lagging', 'stored', '60s');
    await eventually(() => replica.client().exists('test:{lagging}'));
    // What it has not heard of yet.
    await replica.client().config('SET', 'replica-read-only', 'no');
    await replica.client().del('test:{lagging}');
    await replica.client().config('SET', 'replica-read-only', 'yes');
    expect(await cache.getOrLoad('lagging', found, '60s')).toBe('stored');
  });

  test('a frozen replica costs one read half a commandTimeout, and then none', async () => {
    const cache = await start(connection());
    await untilReplicaAnswers(cache);
    await cache.set('frozen', 'stored', '60s');
    await eventually(() => replica.client().exists('test:{frozen}'));
    replica.freeze();
    const slow: number[] = [];
    for (let i = 0; i < 20; i += 1) {
      const asked = performance.now();
      expect(await cache.getOrLoad('frozen', found, '60s')).toBe('stored');
      const took = performance.now() - asked;
      // Half of it, but for timers that fire a little early.
      if (took > 0.45 * COMMAND_TIMEOUT) slow.push(took);
    }
    expect(slow.length).toBeGreaterThanOrEqual(1);
    expect(slow.length).toBeLessThanOrEqual(4);
    replica.thaw();
    await untilReplicaAnswers(cache);
  });

  test('without a replica the primary answers, and a replica that comes is used', async () => {
    await replica.kill();
    const cache = await start(connection());
    await cache.set('alone', 'stored', '60s');
    expect(await cache.getOrLoad('alone', found, '60s')).toBe('stored');
    await replica.restart();
    await untilReplicaAnswers(cache);
  });
});

describe('a Cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster({ primaries: 3, replicas: 1 });
  });
  afterAll(() => cluster.stop());
  const connection = (options = {}) => new Cluster([...cluster.startupNodes], { lazyConnect: true, ...options });
  const keys = Array.from({ length: 30 }, (_, i) => `key${i}`);
  const sum = async (servers: readonly RedisServer[]) =>
    (await Promise.all(servers.map(gets))).reduce((total, count) => total + count);

  async function fill(cache: Stampede['cache']): Promise<void> {
    await Promise.all(keys.map((key) => cache.set(key, 'stored', '60s')));
    await eventually(async () => {
      const stored = await Promise.all(cluster.replicas.map((each) => each.client().dbsize()));
      return stored.reduce((total, count) => total + count) >= keys.length;
    });
  }
  const askAll = (cache: Stampede['cache']) => Promise.all(keys.map((key) => cache.getOrLoad(key, found, '60s')));

  test('getOrLoad looks at replicas, also for the time; get at the primary', async () => {
    const cache = await start(connection());
    await fill(cache);
    await eventually(async () => {
      await cluster.resetStats();
      expect(await askAll(cache)).toEqual(keys.map(() => 'stored'));
      return (await sum(cluster.replicas)) === keys.length && (await sum(cluster.primaries)) === 0;
    });
    const withWindow = { ttl: '60s', staleIfError: '60s' } as const;
    await Promise.all(keys.map((key) => cache.getOrLoad(key, found, withWindow)));
    expect(await sum(cluster.primaries)).toBe(0);
    await cache.get('key1');
    expect(await sum(cluster.primaries)).toBe(1);
  });

  test('a Cluster client that reads from replicas does not make ours do so', async () => {
    const cache = await start(connection({ scaleReads: 'slave' }), 'primary');
    await fill(cache);
    await cluster.resetStats();
    expect(await askAll(cache)).toEqual(keys.map(() => 'stored'));
    expect(await sum(cluster.replicas)).toBe(0);
  });

  test('a dead replica: its primary answers', async () => {
    const cache = await start(connection());
    await fill(cache);
    await (cluster.replicas[0] as RedisServer).kill();
    for (let i = 0; i < 5; i += 1) expect(await askAll(cache)).toEqual(keys.map(() => 'stored'));
  });
});

test.each(['a URL', 'options'])(
  'for a single Redis (%s) it is refused at boot, as nobody tells where replicas are',
  async (form) => {
    const connection = form === 'a URL' ? 'redis://127.0.0.1:1' : { port: 1 };
    const store = newStore({ connection, readFrom: 'replica' });
    const error = await store.start().catch((reason) => reason);
    await store.close();
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error.message).toMatch(/^readFrom must be 'primary', .* only Sentinel and Cluster tell where replicas are/);
  },
);

test('readFrom takes nothing else', () => {
  const make = () => newStore({ connection: 'redis://localhost', readFrom: 'slave' as never });
  expect(make).toThrow(/^readFrom must be "primary" or "replica"/);
});
