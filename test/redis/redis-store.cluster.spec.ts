import { afterAll, beforeAll } from '@jest/globals';
import { Cluster } from 'ioredis';
import { Cluster as Cluster5 } from 'ioredis5';
import { storeSuite } from '../conformance/store-suite.js';
import { type RedisCluster, startCluster } from '../support/redis-cluster.js';
import { openGroup } from './redis-stores.js';

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.stop());

const lazyConnect = true;

storeSuite('RedisStore on a Cluster with ioredis 6', (count) =>
  openGroup(new Cluster([...cluster.startupNodes], { lazyConnect }), 'cluster6', count),
);
storeSuite('RedisStore on a Cluster with ioredis 5', (count) =>
  openGroup(new Cluster5([...cluster.startupNodes], { lazyConnect }), 'cluster5', count),
);
