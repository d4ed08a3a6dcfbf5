import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { eventually } from './eventually.js';
import { type RedisSentinel, startSentinel } from './redis-sentinel.js';

let sentinel: RedisSentinel;
beforeAll(async () => {
  sentinel = await startSentinel();
});
afterAll(() => sentinel.stop());

test('fails over when asked to, and the old primary is a replica that keeps its connections', async () => {
  const client = new Redis({ ...sentinel.options, sentinelRetryStrategy: () => 50 });
  client.on('error', () => {});
  const before = await sentinel.primary();
  expect(await client.set('key', '1')).toBe('OK');
  const closed = jest.fn();
  client.on('close', closed);

  const after = await sentinel.failover();
  expect(after).not.toBe(before);
  expect(await sentinel.primary()).toBe(after);
  expect(await after.client().set('key', '2')).toBe('OK');
  await expect(client.set('key', '3')).rejects.toThrow('READONLY');
  expect(closed).not.toHaveBeenCalled();
  client.disconnect();
});

test('fails over when the primary is killed', async () => {
  const before = await sentinel.primary();
  await before.kill();
  await eventually(async () => (await sentinel.primary()) !== before, { within: 20_000 });
});
