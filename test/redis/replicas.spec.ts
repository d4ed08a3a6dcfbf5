/** `replicas: n`: what counts only when replicas have it. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { createStampede, type Stampede } from '../../lib/core/create.js';
import {
  CacheEvictionError,
  CacheUnavailableError,
  InvalidOptionError,
  LockUnavailableError,
  NotReplicatedError,
} from '../../lib/core/errors.js';
import type { CacheEvent } from '../../lib/core/events.js';
import { ConfirmedWrites } from '../../lib/redis/confirmed-writes.js';
import type { RedisStoreOptions } from '../../lib/redis/redis-store.js';
import { eventually } from '../support/eventually.js';
import { type RedisCluster, startCluster } from '../support/redis-cluster.js';
import { startSentinel } from '../support/redis-sentinel.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { newStore } from './redis-stores.js';

const FAILOVER = { within: 30_000, every: 50 };
const open: Stampede[] = [];
let events: CacheEvent[] = [];
let warnings: string[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

async function start(options: Partial<RedisStoreOptions> & Pick<RedisStoreOptions, 'connection'>): Promise<Stampede> {
  warnings = [];
  const logger = { log() {}, error() {}, warn: (message: string) => warnings.push(message) };
  // Where all goes well, a busy machine may take its time.
  const commandTimeout = options.commandTimeout ?? 4_000;
  const store = newStore({ replicas: 1, logger, ...options, commandTimeout });
  const stampede = createStampede({ store }, { commandTimeout });
  open.push(stampede);
  await stampede.start();
  events = [];
  stampede.cache.events.subscribe((event) => events.push(event));
  return stampede;
}

const causeOf = (error: { cause?: unknown }) => error.cause;

/** @returns whether there was a connection that waits for replicas */
async function killWaiting(primary: RedisServer): Promise<boolean> {
  const list = String(await primary.client().client('LIST'));
  const [, id] = /^id=(\d+) .* cmd=wait /m.exec(list) ?? [];
  if (id) await primary.client().client('KILL', 'ID', id);
  return id !== undefined;
}

describe('a primary and a replica', () => {
  let primary: RedisServer;
  let replica: RedisServer;

  beforeAll(async () => {
    primary = await startRedis();
    replica = await startRedis({ args: ['--replicaof', `${primary.host} ${primary.port}`] });
    await eventually(async () => (await replica.client().info('replication')).includes('master_link_status:up'));
    await eventually(async () => (await primary.client().info('replication')).includes('state=online'));
  });
  afterAll(async () => {
    await replica.stop();
    await primary.stop();
  });
  afterEach(() => replica.thaw());

  test('evict, expire, set and locks go through while the replica answers', async () => {
    const { cache, locks } = await start({ connection: primary.url });
    expect(warnings).toEqual([]);
    await cache.set('key', 1, '60s');
    expect(await replica.client().get('test:{key}')).toMatch(/^1;/);
    await cache.expire('key');
    await cache.evict('key');
    expect(await replica.client().keys('*')).toEqual([]);
    const lock = await locks.acquire('lock');
    expect(await replica.client().get('test:{lock}:mutex')).toBe(lock.token);
    expect(await lock.release()).toBe(true);
    expect(await cache.getOrLoad('key', () => 2, '60s')).toBe(2);
  });

  test('a load asks no replica, and many evictions at once share a WAIT', async () => {
    const { cache } = await start({ connection: primary.url });
    await cache.evict('warm');
    await primary.resetStats();
    await cache.getOrLoad('loaded', () => 1, '60s');
    expect(await primary.commandStats()).not.toHaveProperty('wait');
    await primary.resetStats();
    await cache.evict(Array.from({ length: 300 }, (_, i) => `key${i}`));
    const { evalsha, publish, wait } = await primary.commandStats();
    expect(publish).toBe(300);
    expect(evalsha).toBeLessThan(30);
    expect(wait).toBeLessThan(30);
  });

  test('an eviction of nothing writes all the same, since another may have deleted it a moment ago', async () => {
    const { cache } = await start({ connection: primary.url });
    await cache.evict('warm');
    await replica.resetStats();
    await cache.evict('nothing');
    // What it has run, it was sent.
    expect(await replica.commandStats()).toMatchObject({ set: 1 });
    expect(await primary.client().keys('*nothing*')).toEqual([]);
  });

  test('a frozen replica: evict rejects, is made up for later, and holds up no read', async () => {
    const { cache } = await start({ commandTimeout: 2_000, connection: primary.url });
    await cache.set('key', 'old', '60s');
    await cache.set('other', 'hit', '60s');
    replica.freeze();
    const evicted = cache.evict('key').catch((error) => error);
    const hits = new Set<unknown>();
    let isOver = false;
    const over = evicted.then(() => {
      isOver = true;
    });
    while (!isOver) hits.add(await cache.getOrLoad('other', () => 'loaded', '60s'));
    await over;
    expect(await evicted).toBeInstanceOf(CacheEvictionError);
    expect(causeOf(await evicted)).toBeInstanceOf(NotReplicatedError);
    expect((await evicted).message).toContain('key');
    expect([...hits]).toEqual(['hit']);
    // Nothing that is stored for this key is answered before the replica has it.
    expect(await cache.get('key')).toBeUndefined();
    expect(events).toContainEqual(expect.objectContaining({ type: 'evict-failed', key: 'key', willRetry: true }));
    replica.thaw();
    await eventually(() => events.some(({ type }) => type === 'evict'), { within: 10_000 });
  });

  test('a frozen replica: set rejects', async () => {
    const { cache } = await start({ commandTimeout: 2_000, connection: primary.url });
    replica.freeze();
    const error = await cache.set('key', 1, '60s').catch((reason) => reason);
    expect(error).toBeInstanceOf(CacheUnavailableError);
    expect(causeOf(error)).toBeInstanceOf(NotReplicatedError);
  });

  test('a frozen replica: a set rejects, also when its connection is lost while it waits', async () => {
    const { cache } = await start({ commandTimeout: 2_000, connection: primary.url });
    replica.freeze();
    const set = cache.set('lost', 1, '60s').catch((reason) => reason);
    await eventually(async () => (await primary.client().exists('test:{lost}')) === 1);
    await eventually(() => killWaiting(primary));
    expect(await set).toBeInstanceOf(CacheUnavailableError);
  });

  test('a frozen replica: no lock is given, and none stays', async () => {
    const { locks } = await start({ commandTimeout: 2_000, connection: primary.url });
    replica.freeze();
    const error = await locks.acquire('lock').catch((reason) => reason);
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(causeOf(error)).toBeInstanceOf(NotReplicatedError);
    await eventually(async () => (await primary.client().exists('test:{lock}:mutex')) === 0);
    replica.thaw();
    // What is late is given back as well.
    await eventually(() => locks.tryAcquire('lock').then((lock) => lock?.release()), { within: 10_000 });
  });

  test('fewer replicas than asked for is a warning at boot, which names both numbers', async () => {
    await start({ connection: primary.url, replicas: 2 });
    expect(warnings).toEqual([expect.stringMatching(/'replicas' is 2, .* only 1 /)]);
  });

  test('what was written on a connection that is gone is confirmed by no other', async () => {
    const client = new Redis({ port: primary.port, retryStrategy: () => 1 });
    client.on('error', () => {});
    const writes = new ConfirmedWrites(1, 200);
    const set = (beforeReply: () => Promise<unknown>) =>
      writes.run(client, 'name', async () => {
        await client.set('name', '1');
        await beforeReply();
      });
    await set(async () => {});
    await expect(
      set(async () => {
        const ready = new Promise((resolve) => client.once('ready', resolve));
        await primary.client().client('KILL', 'ID', await client.client('ID'));
        await ready;
      }),
    ).rejects.toThrow('the connection was lost');
    client.disconnect();
  });

  test.each([-1, 1.5, Number.NaN, '1', null])('replicas: %p is refused', (replicas) => {
    const make = () => newStore({ connection: primary.url, replicas: replicas as never });
    expect(make).toThrow(InvalidOptionError);
    expect(make).toThrow(/^replicas must be a whole number/);
  });
});

test('Sentinel: a failover does not lose an eviction that was acknowledged', async () => {
  const sentinel = await startSentinel();
  try {
    const connection = new Redis({ ...sentinel.options, lazyConnect: true });
    const { cache } = await start({ connection });
    const keys = Array.from({ length: 20 }, (_, i) => `key${i}`);
    await Promise.all(keys.map((key) => cache.set(key, 'old', '60s')));
    const before = await sentinel.primary();
    await cache.evict(keys);
    await before.kill();
    const after = await eventually(async () => {
      const named = await sentinel.primary();
      return named !== before && named;
    }, FAILOVER);
    expect(await after.client().keys('*')).toEqual([]);
    // Its only replica is dead, so it acknowledges nothing more.
    await expect(cache.evict('key0')).rejects.toThrow(CacheEvictionError);
    expect(await cache.getOrLoad('key1', () => 'new', '60s')).toBe('new');
  } finally {
    await Promise.all(open.splice(0).map((each) => each.close()));
    await sentinel.stop();
  }
});

describe('a Cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster({ primaries: 3, replicas: 1 });
  });
  afterAll(() => cluster.stop());

  const connection = () => new Cluster([...cluster.startupNodes], { lazyConnect: true });
  const keys = Array.from({ length: 60 }, (_, i) => `key${i}`);
  const name = (key: string) => `test:{${key}}`;
  const replicaOf = (primary: RedisServer) => cluster.replicas[cluster.primaries.indexOf(primary)] as RedisServer;

  test('each node’s own replica confirms', async () => {
    const { cache, locks } = await start({ connection: connection() });
    expect(warnings).toEqual([]);
    await Promise.all(keys.map((key) => cache.set(key, 'old', '60s')));
    await cache.evict(keys);
    for (const replica of cluster.replicas) expect(await replica.client().dbsize()).toBe(0);
    const lock = await locks.acquire('key0');
    const holder = replicaOf(await cluster.primaryOf(name('key0')));
    expect(await holder.client().keys('*')).toContain('test:{key0}:mutex');
    await lock.release();
  });

  test('one frozen replica fails the evictions of its primary, and no others', async () => {
    const { cache } = await start({ commandTimeout: 2_000, connection: connection() });
    const primary = await cluster.primaryOf(name('key0'));
    const [theirs, others]: [string[], string[]] = [[], []];
    for (const key of keys) ((await cluster.primaryOf(name(key))) === primary ? theirs : others).push(key);
    replicaOf(primary).freeze();
    const error = (await cache.evict(keys).catch((reason) => reason)) as CacheEvictionError;
    replicaOf(primary).thaw();
    expect(error).toBeInstanceOf(CacheEvictionError);
    expect([...error.keys].sort()).toEqual(theirs.sort());
    await eventually(() => cache.evict(theirs).then(() => true), { within: 10_000 });
  });

  test('a slot that moves: what could not be done meanwhile is made up for when it has moved', async () => {
    const { cache, locks } = await start({ commandTimeout: 1_500, connection: connection() });
    const source = await cluster.primaryOf(name('moving'));
    const target = cluster.primaries.find((each) => each !== source) as RedisServer;
    const slot = Number(await source.client().call('CLUSTER', 'KEYSLOT', name('moving')));
    const [from, to] = await Promise.all([source, target].map((each) => each.client().call('CLUSTER', 'MYID')));
    await cache.set('moving', 'old', '60s');
    await target.client().call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(from));
    await source.client().call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(to));
    await source.client().migrate(target.host, target.port, name('moving'), 0, 1_000);
    // No node takes several keys of a slot that is under way.
    await expect(cache.evict('moving')).rejects.toThrow(CacheEvictionError);
    await expect(locks.acquire('moving')).rejects.toThrow(LockUnavailableError);
    for (const each of [target, source]) await each.client().call('CLUSTER', 'SETSLOT', slot, 'NODE', String(to));
    await eventually(() => events.some((event) => event.type === 'evict' && event.key === 'moving'));
    expect(await replicaOf(target).client().keys('*moving*')).toEqual([]);
    const lock = await locks.acquire('moving');
    expect(await replicaOf(target).client().keys('*:mutex')).toEqual(['test:{moving}:mutex']);
    await lock.release();
  });

  test('a failover does not lose an eviction that was acknowledged', async () => {
    const { cache } = await start({ connection: connection() });
    await Promise.all(keys.map((key) => cache.set(key, 'old', '60s')));
    const primary = await cluster.primaryOf(name('key0'));
    const successor = replicaOf(primary);
    await cache.evict(keys);
    await primary.kill();
    await eventually(async () => (await successor.client().info('replication')).includes('role:master'), FAILOVER);
    const left = (await successor.client().keys('*')).filter((each) => !each.endsWith(':fence'));
    expect(left).toEqual([]);
    const loaded = () => cache.getOrLoad('key0', () => 'new', '60s');
    expect(await loaded()).toBe('new');
  });
});
