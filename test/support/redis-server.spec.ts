import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { eventually } from './eventually.js';
import { type RedisServer, startRedis } from './redis-server.js';

let redis: RedisServer;
let clients: Redis[] = [];

beforeAll(async () => {
  redis = await startRedis({ users: 'user app on >secret ~app:* resetchannels +@all' });
});
afterAll(() => redis.stop());
afterEach(() => {
  for (const client of clients) client.disconnect();
  clients = [];
});

function connect(options: { username?: string; password?: string; commandTimeout?: number } = {}): Redis {
  const client = new Redis({ port: redis.port, retryStrategy: () => 20, ...options });
  client.on('error', () => {});
  clients.push(client);
  return client;
}

test('counts commands, those in scripts too, housekeeping not', async () => {
  const client = connect();
  await client.ping();
  await redis.resetStats();
  await client.set('a', '1');
  await client.get('a');
  await client.get('b');
  await client.eval("return redis.call('GET', KEYS[1])", 1, 'a');
  await client.client('ID');
  expect(await redis.commandStats()).toEqual({ set: 1, get: 3, eval: 1 });
  expect(await redis.commandCount()).toBe(5);
});

test('tells the time to live', async () => {
  await redis.client().set('ttl', '1', 'PX', 5000);
  expect(await redis.pttl('ttl')).toBeGreaterThan(4000);
  expect(await redis.pttl('none')).toBe(-2);
});

test('knows the ACL users', async () => {
  const client = connect({ username: 'app', password: 'secret' });
  expect(await client.set('app:1', 'x')).toBe('OK');
  await expect(client.set('other', 'x')).rejects.toThrow('NOPERM');
  await expect(client.publish('channel', 'x')).rejects.toThrow('NOPERM');
});

test('frozen: keeps connections and answers nothing', async () => {
  const client = connect({ commandTimeout: 200 });
  await client.ping();
  redis.freeze();
  await expect(client.ping()).rejects.toThrow('timed out');
  redis.thaw();
  await eventually(() => client.ping());
});

test('killed: connections close; restarted: the same port, empty', async () => {
  const client = connect();
  await client.set('kept', '1');
  const closed = new Promise((resolve) => client.once('close', resolve));
  await redis.kill();
  await closed;
  expect(redis.running).toBe(false);
  await redis.restart();
  expect(await redis.client().get('kept')).toBeNull();
  expect(await client.get('kept')).toBeNull();
});

test('one that can not start says why', async () => {
  await expect(startRedis({ port: redis.port })).rejects.toThrow('Address already in use');
});
