import { afterAll, beforeAll } from '@jest/globals';
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { storeSuite } from '../conformance/store-suite.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { openGroup } from './redis-stores.js';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const lazyConnect = true;

storeSuite('RedisStore with ioredis 6', (count) => openGroup(new Redis(redis.port, { lazyConnect }), 'redis6', count));
storeSuite('RedisStore with ioredis 5', (count) => openGroup(new Redis5(redis.port, { lazyConnect }), 'redis5', count));
storeSuite('RedisStore with automatic pipelines', (count) =>
  openGroup({ port: redis.port, enableAutoPipelining: true }, 'pipelines', count),
);
