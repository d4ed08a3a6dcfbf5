import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Cluster } from 'ioredis';
import { eventually } from './eventually.js';
import { type RedisCluster, startCluster } from './redis-cluster.js';

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startCluster({ primaries: 3, replicas: 1 });
});
afterAll(() => cluster.stop());

test('every key has a node, and the counts are over all of them', async () => {
  const client = new Cluster([...cluster.startupNodes]);
  await cluster.resetStats();
  const keys = Array.from({ length: 30 }, (_, index) => `key:${index}`);
  for (const key of keys) expect(await client.set(key, key)).toBe('OK');
  const { set } = await cluster.commandStats();
  // More than 30: the replicas run it too.
  expect(set).toBeGreaterThanOrEqual(30);
  for (const key of keys) {
    expect(await (await cluster.primaryOf(key)).client().get(key)).toBe(key);
  }
  client.disconnect();
});

test('a replica takes over from a killed primary', async () => {
  const primary = await cluster.primaryOf('key');
  await cluster.client().set('key', '1');
  await cluster.client().wait(1, 1000);
  await primary.kill();
  await eventually(async () => (await cluster.client().set('key', '2')) === 'OK', { within: 50_000 });
  await primary.restart();
}, 60_000);
