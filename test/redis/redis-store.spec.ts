import { afterAll, beforeAll } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5';
import { storeSuite } from '../conformance/store-suite.js';
import { type RedisCluster, startCluster } from '../support/redis-cluster.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { openGroup } from './redis-stores.js';

let redis: RedisServer;
let cluster: RedisCluster;
beforeAll(async () => {
  [redis, cluster] = await Promise.all([startRedis(), startCluster()]);
});
afterAll(async () => {
  await Promise.all([redis.stop(), cluster.stop()]);
});

const lazyConnect = true;

storeSuite('RedisStore on one server, ioredis 6', (count) =>
  openGroup(new Redis(redis.port, { lazyConnect }), 'redis6', count),
);
storeSuite('RedisStore on one server, ioredis 5', (count) =>
  openGroup(new Redis5(redis.port, { lazyConnect }), 'redis5', count),
);
storeSuite('RedisStore on one server, automatic pipelines', (count) =>
  openGroup({ port: redis.port, enableAutoPipelining: true }, 'pipelines', count),
);
storeSuite('RedisStore on a Cluster, ioredis 6', (count) =>
  openGroup(new Cluster([...cluster.startupNodes], { lazyConnect }), 'cluster6', count),
);
storeSuite('RedisStore on a Cluster, ioredis 5', (count) =>
  openGroup(new Cluster5([...cluster.startupNodes], { lazyConnect }), 'cluster5', count),
);
