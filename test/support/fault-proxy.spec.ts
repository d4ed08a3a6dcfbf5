import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { eventually } from './eventually.js';
import { type FaultProxy, startProxy } from './fault-proxy.js';
import { type RedisServer, startRedis } from './redis-server.js';

let redis: RedisServer;
let proxy: FaultProxy;
let client: Redis;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client().flushall();
  proxy = await startProxy(redis.port);
  client = new Redis({
    port: proxy.port,
    commandTimeout: 300,
    maxRetriesPerRequest: 0,
    retryStrategy: () => 20,
    disconnectTimeout: 100,
  });
  client.on('error', () => {});
  await client.ping();
});
afterEach(async () => {
  client.disconnect();
  await proxy.stop();
});

test('delays both ways and keeps the order', async () => {
  let seed = 1;
  const random = () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  proxy.delay({ min: 20, max: 60, random });
  const start = performance.now();
  await client.ping();
  expect(performance.now() - start).toBeGreaterThanOrEqual(39);

  const sent = Array.from({ length: 20 }, (_, index) => String(index));
  const replies: unknown[] = [];
  for (const value of sent) {
    void client.echo(value).then((reply) => replies.push(reply));
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  await eventually(() => replies.length === sent.length);
  expect(replies.map(String)).toEqual(sent);
});

test('holds requests until they are released', async () => {
  proxy.hold('toServer');
  await expect(client.set('held', '1')).rejects.toThrow('timed out');
  expect(await redis.client().get('held')).toBeNull();
  proxy.release();
  await eventually(() => redis.client().get('held'));
});

test('holds replies until they are released', async () => {
  proxy.hold('toClient');
  await expect(client.set('done', '1')).rejects.toThrow('timed out');
  expect(await redis.client().get('done')).toBe('1');
  proxy.release('toClient');
  expect(await client.get('done')).toBe('1');
});

test('cuts: the client loses its connection and may come again', async () => {
  const closed = new Promise((resolve) => client.once('close', resolve));
  proxy.cut();
  await closed;
  await eventually(() => client.ping());
  expect(proxy.connections).toBe(1);
});

test('refuses new connections until it accepts them', async () => {
  proxy.refuse();
  expect(await client.ping()).toBe('PONG');
  const refused = new Promise<Error>((resolve) => client.once('error', resolve));
  proxy.cut();
  expect(await refused).toMatchObject({ code: 'ECONNREFUSED' });
  await proxy.accept();
  await eventually(() => client.ping());
});

test('delays one request', async () => {
  proxy.onRequest((request) => (request.includes('slow') ? { delay: 100 } : 'pass'));
  const start = performance.now();
  await client.get('fast');
  expect(performance.now() - start).toBeLessThan(100);
  await client.get('slow');
  expect(performance.now() - start).toBeGreaterThanOrEqual(99);
});

test('sends something else instead', async () => {
  proxy.onRequest((request) =>
    request.includes('sad') ? { instead: request.replace('sad', 'glad').replace('$3\r\ngl', '$4\r\ngl') } : 'pass',
  );
  expect(await client.echo('sad')).toBe('glad');
  expect(await client.echo('as it was')).toBe('as it was');
});

test('drops a reply, and all that follow on that connection', async () => {
  proxy.onRequest((request) => (request.includes('lost') ? 'dropReply' : 'pass'));
  await expect(client.set('lost', '1')).rejects.toThrow('timed out');
  expect(await redis.client().get('lost')).toBe('1');
  await expect(client.get('other')).rejects.toThrow('timed out');
  proxy.cut();
  await eventually(() => client.get('other').then(() => true));
});

test('cuts before the request, and before the reply', async () => {
  proxy.onRequest((request) => (request.includes('before') ? 'cut' : request.includes('after') ? 'cutReply' : 'pass'));
  await expect(client.set('before', '1')).rejects.toThrow();
  expect(await redis.client().get('before')).toBeNull();
  await eventually(() => client.ping());
  await expect(client.set('after', '1')).rejects.toThrow();
  expect(await redis.client().get('after')).toBe('1');
});

test('passes on that the server has gone', async () => {
  const closed = new Promise((resolve) => client.once('close', resolve));
  await redis.kill();
  await closed;
  await redis.restart();
  await eventually(() => client.ping());
});
