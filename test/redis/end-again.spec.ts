/** An `end` that is sent again, because no reply came: what the first has stored counts, and nothing that only looks like it. */
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { formatEntry } from '../../lib/core/entry.js';
import type { EndRequest, StoredEntry } from '../../lib/core/store.js';
import { end } from '../../lib/redis/end.js';
import { KeyNames } from '../../lib/redis/key-names.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';

const names = new KeyNames('test');
const { value, lock } = names.cache('key');
const text = formatEntry('"value"', 0);
const SENT_FOR = 500;
let redis: RedisServer;
let client: Redis;

beforeAll(async () => {
  redis = await startRedis();
  client = new Redis(redis.url);
});
afterAll(async () => {
  await client.quit();
  await redis.stop();
});
beforeEach(() => client.flushall());

const requestFor = (entry?: StoredEntry): EndRequest => ({
  kind: 'cache',
  key: 'key',
  token: 'p#1',
  entry,
  claimed: true,
});
const again = (entry?: StoredEntry) => end(client, names, requestFor(entry), SENT_FOR);
const carriedOut = async (entry?: StoredEntry) => {
  await client.set(lock, 'p#1', 'PX', 10_000);
  expect(await end(client, names, requestFor(entry))).toEqual({ is: 'held', stored: entry !== undefined });
};
const FOREVER = { text, px: Infinity };
const PLAIN = { text, px: 60_000 };
const STAMPED = { text, px: 90_000, freshFor: 60_000 };

test.each([FOREVER, PLAIN, STAMPED])('was carried out: %p', async (entry) => {
  await carriedOut(entry);
  expect(await again(entry)).toEqual({ is: 'held', stored: true });
  // Not by its own lock any more: another's stays.
  await client.set(lock, 'other#1', 'PX', 10_000);
  expect(await again(entry)).toEqual({ is: 'held', stored: true });
  expect(await client.get(lock)).toBe('other#1');
});

test('was not carried out, and the lock is still ours', async () => {
  await client.set(lock, 'p#1', 'PX', 10_000);
  expect(await again(STAMPED)).toEqual({ is: 'held', stored: true });
  expect(await client.exists(lock)).toBe(0);
});

test.each<[string, StoredEntry, () => Promise<unknown>]>([
  ['nothing is there', PLAIN, () => client.del(value)],
  ['another value is there', PLAIN, () => client.set(value, formatEntry('"other"', 0), 'PX', 60_000)],
  ['it is no text', PLAIN, () => client.multi().del(value).lpush(value, text).pexpire(value, 60_000).exec()],
  ['an equal one is there that lives longer', PLAIN, () => client.set(value, text, 'PX', 61_000)],
  ['an equal one is there that is older', PLAIN, () => client.set(value, text, 'PX', 59_000)],
  ['an equal one is there for ever', PLAIN, () => client.persist(value)],
  ['an equal one is there, but not for ever', FOREVER, () => client.pexpire(value, 60_000)],
  ['an equal one is there without a stamp', STAMPED, () => client.set(value, text, 'PX', 90_000)],
  ['it has been stale since', STAMPED, () => client.set(value, `1;${Date.now()}${text.slice(2)}`, 'PX', 90_000)],
  [
    'it is fresh for longer',
    STAMPED,
    () => client.set(value, `1;${Date.now() + 70_000}${text.slice(2)}`, 'PX', 90_000),
  ],
])('is refused: %s', async (_, entry, change) => {
  await carriedOut(entry);
  await change();
  const found = await client.dumpBuffer(value).catch(() => null);
  expect(await again(entry)).toEqual({ is: 'refused' });
  expect(await client.dumpBuffer(value).catch(() => null)).toEqual(found);
});

test('is refused the first time, whatever is there', async () => {
  await carriedOut(PLAIN);
  expect(await end(client, names, requestFor(PLAIN))).toEqual({ is: 'refused' });
});

test('is refused without an entry', async () => {
  await carriedOut();
  expect(await again()).toEqual({ is: 'refused' });
});
