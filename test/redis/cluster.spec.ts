import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { Cluster } from 'ioredis';
import { formatEntry } from '../../lib/core/entry.js';
import type { RedisStore } from '../../lib/redis/redis-store.js';
import { eventually } from '../support/eventually.js';
import { type RedisCluster, startCluster } from '../support/redis-cluster.js';
import type { RedisServer } from '../support/redis-server.js';
import { startStore, untilListeningAgain } from './redis-stores.js';

let cluster: RedisCluster;
let store: RedisStore;

beforeAll(async () => {
  cluster = await startCluster({ primaries: 3, replicas: 1 });
});
afterAll(() => cluster.stop());
afterEach(() => store.close());

const connection = () => new Cluster([...cluster.startupNodes], { lazyConnect: true });
const keys = Array.from({ length: 100 }, (_, i) => `key${i}`);
const text = (key: string) => formatEntry(key, 1);
const name = (key: string) => `test:{${key}}`;

/** Rejects unless the store leads, stores and wakes for every key. */
async function fill(): Promise<void> {
  await Promise.all(
    keys.map(async (key, i) => {
      const lock = { kind: 'cache', key, token: `${store.process}#${i}` } as const;
      await store.replace({ key, by: 'evict' });
      expect(await store.lead({ ...lock, lease: 5_000, follow: true })).toEqual({ is: 'leading' });
      expect(await store.end({ ...lock, entry: { text: text(key), px: 60_000 } })).toMatchObject({ stored: true });
    }),
  );
}

test('reads from all nodes, in order, each key once', async () => {
  store = await startStore({ connection: connection() });
  await fill();
  await cluster.client().del(name('key7'));
  await cluster.client().hset(name('key7'), 'field', 'no text');
  await cluster.resetStats();
  expect((await store.read(keys)).texts).toEqual(keys.map((key) => (key === 'key7' ? undefined : text(key))));
  expect(await cluster.commandStats()).toEqual({ get: keys.length });
});

test('a wake-up reaches a process that listens on another node', async () => {
  store = await startStore({ connection: connection() });
  // Each store picks a node at random.
  const followers = await Promise.all(Array.from({ length: 6 }, () => startStore({ connection: connection() })));
  const lock = { kind: 'cache', key: 'woken', token: `${store.process}#1`, lease: 5_000, follow: true } as const;
  await store.lead(lock);
  const woken = followers.map(async (follower) => {
    const token = new Promise((resolve) => follower.onWake(resolve));
    await follower.lead({ ...lock, token: `${follower.process}#1` });
    return token;
  });
  await eventually(async () => (await cluster.client().get('test:{woken}:lock'))?.split(',').length === 7);
  await store.end(lock);
  expect(new Set(await Promise.all(woken))).toEqual(new Set([lock.token]));
  await Promise.all(followers.map((follower) => follower.close()));
});

test('follows slots that move', async () => {
  store = await startStore({ connection: connection() });
  await store.replace({ key: 'key1', by: 'evict' });
  await store.replace({ key: 'key2', by: 'evict' });
  await fill();
  for (const key of ['key1', 'key2', 'key3']) await moveSlot(key);
  expect((await store.read(keys)).texts).toEqual(keys.map(text));
  await fill();
});

test('goes on after a failover, and is woken again', async () => {
  store = await startStore({ connection: connection(), commandTimeout: 300 });
  await fill();
  const listening = untilListeningAgain(store);
  const killed = cluster.primaries[0] as RedisServer;
  // Wherever it listened, it has to find another node.
  await Promise.all(cluster.nodes.map((node) => node.client().call('CLIENT', 'KILL', 'TYPE', 'pubsub')));
  await killed.kill();
  await eventually(() => fill().then(() => true), { within: 20_000, every: 100 });
  await listening;
  expect((await store.read(keys)).texts).toEqual(keys.map(text));
});

/** To any other primary, keys and all. */
async function moveSlot(key: string): Promise<void> {
  const source = await cluster.primaryOf(name(key));
  const target = cluster.primaries.find((primary) => primary !== source) as RedisServer;
  const slot = Number(await source.client().call('CLUSTER', 'KEYSLOT', name(key)));
  const [from, to] = await Promise.all([source, target].map((each) => each.client().call('CLUSTER', 'MYID')));
  await target.client().call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(from));
  await source.client().call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(to));
  const names = (await source.client().call('CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[];
  // While the slot is half moved, its keys are asked for at both ends.
  await source.client().migrate(target.host, target.port, '', 0, 1_000, 'KEYS', ...names);
  expect((await store.read([key])).texts[0]).toBe(text(key));
  expect((await store.read(keys)).texts).toEqual(keys.map(text));
  for (const primary of [target, source]) await primary.client().call('CLUSTER', 'SETSLOT', slot, 'NODE', String(to));
}
