import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { createStampede } from '../../lib/core/create.js';
import { endSilent } from '../../lib/redis/silence.js';
import { eventually } from '../support/eventually.js';
import { startProxy } from '../support/fault-proxy.js';
import { startCluster } from '../support/redis-cluster.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { newStore } from './redis-stores.js';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

test('a connection is ended when replies are due and nothing comes; not while nothing is asked', async () => {
  const client = new Redis(redis.url, { retryStrategy: () => 10 });
  let closed = 0;
  client.on('close', () => {
    closed += 1;
  });
  client.on('error', () => {});
  endSilent(client, 200);
  try {
    await client.ping();
    await sleep(500);
    expect(closed).toBe(0);
    redis.freeze();
    const pong = client.ping();
    await eventually(() => closed > 0);
    redis.thaw();
    expect(await pong).toBe('PONG');
    expect(await client.ping()).toBe('PONG');
  } finally {
    redis.thaw();
    client.disconnect();
  }
});

test('and so are those of the nodes of a Cluster', async () => {
  const cluster = await startCluster({ primaries: 3 });
  const client = new Cluster([...cluster.startupNodes], { redisOptions: { maxRetriesPerRequest: 0 } });
  endSilent(client, 200);
  const node = cluster.primaries[0] as RedisServer;
  try {
    await new Promise((resolve) => client.once('ready', resolve));
    const nodeClient = client.nodes('master').find(({ options }) => options.port === node.port) as Redis;
    await nodeClient.ping();
    nodeClient.on('error', () => {});
    const closed = new Promise((resolve) => nodeClient.once('close', resolve));
    node.freeze();
    const unanswered = expect(nodeClient.ping()).rejects.toThrow();
    await closed;
    await unanswered;
  } finally {
    node.thaw();
    client.disconnect();
    await cluster.stop();
  }
});

test('a store whose socket is only open on its own side connects anew', async () => {
  const proxy = await startProxy(redis.port);
  const stampede = createStampede(
    { store: newStore({ connection: { host: '127.0.0.1', port: proxy.port }, commandTimeout: 300 }) },
    { commandTimeout: 300 },
  );
  let hits = 0;
  try {
    await stampede.start();
    await stampede.cache.set('key', 1, '60s');
    stampede.cache.events.subscribe(({ type }) => {
      if (type === 'hit') hits += 1;
    });
    let dropped = false;
    proxy.onRequest((request) => {
      if (dropped || !request.includes('{key}')) return 'pass';
      dropped = true;
      return 'dropReply';
    });
    expect(await stampede.cache.getOrLoad('key', () => 2, '60s')).toBe(2);
    expect([dropped, hits]).toEqual([true, 0]);
    await eventually(async () => {
      await stampede.cache.getOrLoad('key', () => 2, '60s');
      return hits > 0;
    });
  } finally {
    await stampede.close();
    await proxy.stop();
  }
});
