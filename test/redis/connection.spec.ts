import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { createStampede } from '../../lib/core/create.js';
import { InvalidOptionError } from '../../lib/core/errors.js';
import type { StampedeLogger } from '../../lib/core/logger.js';
import type { ConnectionOption } from '../../lib/redis/connection-source.js';
import type { RedisStore } from '../../lib/redis/redis-store.js';
import { eventually } from '../support/eventually.js';
import { type FaultProxy, startProxy } from '../support/fault-proxy.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { newStore, startStore, untilListening } from './redis-stores.js';

let redis: RedisServer;
const closing: (() => unknown)[] = [];

beforeAll(async () => {
  redis = await startRedis({ users: 'user default on nopass ~* &* +@all\nuser app on >secret ~* &* +@all' });
});
afterAll(() => redis.stop());
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function onEnd<T>(value: T, close: (value: T) => unknown): T {
  closing.push(() => close(value));
  return value;
}
const client = (options = {}) => onEnd(new Redis({ port: redis.port, ...options }), (each) => each.disconnect());
const closeLater = (store: RedisStore) => onEnd(store, (each) => each.close());

class Log implements StampedeLogger {
  readonly lines: string[] = [];
  log = (message: string) => this.lines.push(`log ${message}`);
  warn = (message: string) => this.lines.push(`warn ${message}`);
  error = (message: string) => this.lines.push(`error ${message}`);
}

async function works(store: RedisStore): Promise<boolean> {
  const lock = { kind: 'cache', key: 'works', token: `${store.process}#1` } as const;
  await store.lead({ ...lock, lease: 1_000, follow: true });
  const waiting = await store.lead({ ...lock, token: `${store.process}#2`, lease: 1_000, follow: true });
  const { is, ...more } = await store.end({ ...lock, entry: { text: '1;;0;0;', px: 1_000 } });
  const [text] = (await store.read(['works'])).texts;
  await store.replace({ key: 'works', by: 'evict' });
  expect({ waiting, is, more, text }).toEqual({
    waiting: {
      is: 'waiting',
      token: lock.token,
      leaseLeft: expect.any(Number),
      wakes: expect.any(Boolean),
      outcomeSeen: expect.any(String),
    },
    is: 'held',
    more: { stored: true },
    text: '1;;0;0;',
  });
  return true;
}

describe('connects by', () => {
  const forms: [string, () => ConnectionOption][] = [
    ['a URL', () => redis.url],
    ['options', () => ({ host: redis.host, port: redis.port })],
    ['a client', () => client()],
    ['a client of ioredis 5', () => onEnd(new Redis5(redis.port), (each) => each.disconnect())],
    ['a client that has yet to connect', () => client({ lazyConnect: true })],
    ['a function', () => () => redis.url],
    ['a function that answers later', () => async () => client()],
    ['a client as BullMQ wants it', () => client({ maxRetriesPerRequest: null, enableReadyCheck: false })],
    ['a client with numbers as texts', () => client({ stringNumbers: true })],
    ['a client with a database', () => client({ db: 3 })],
    ['a client of a user with a password', () => client({ username: 'app', password: 'secret' })],
  ];
  test.each(forms)('%s', async (_name, connection) => {
    const store = closeLater(await startStore({ connection: connection() }));
    expect(await works(store)).toBe(true);
  });

  test.each([undefined, null, '', 6379, ['redis://localhost'], true])('not %p', (connection) => {
    expect(() => newStore({ connection: connection as never })).toThrow(InvalidOptionError);
    expect(() => newStore({ connection: connection as never })).toThrow(/^connection must be a redis:\/\/ URL/);
  });

  test.each([
    'redis://127.0.0.1:99999',
    'http://127.0.0.1:6379',
    'hello world',
    'redis//localhost',
    { port: Number.NaN },
  ])('not %p, which no waiting makes right', (connection) => {
    expect(() => newStore({ connection: connection as never })).toThrow(InvalidOptionError);
  });

  test('not a function that returns none of these', async () => {
    const store = closeLater(newStore({ connection: (() => undefined) as never }));
    await expect(store.start()).rejects.toThrow(InvalidOptionError);
  });
});

test('the user’s client stays as it was: open, its own settings, no listeners, no subscription', async () => {
  const user = client();
  await user.ping();
  const events = ['error', 'ready', 'close', 'end', 'message'] as const;
  const before = events.map((event) => user.listenerCount(event));
  const store = await startStore({ connection: user });
  await works(store);
  await store.close();
  expect(await user.ping()).toBe('PONG');
  expect(events.map((event) => user.listenerCount(event))).toEqual(before);
  expect(user.options).toMatchObject({ enableOfflineQueue: true, maxRetriesPerRequest: 20, keyPrefix: '' });
});

test('two connections a store, none after close', async () => {
  const connections = async () =>
    String(await redis.client().client('LIST'))
      .trim()
      .split('\n').length;
  const before = await connections();
  const store = await startStore({ connection: redis.url });
  expect((await connections()) - before).toBe(2);
  await store.close();
  await eventually(async () => (await connections()) === before);
});

test('a keyPrefix comes before every key and channel (K4)', async () => {
  const store = closeLater(await startStore({ connection: client({ keyPrefix: 'app:' }) }));
  const other = closeLater(await startStore({ connection: redis.url, namespace: 'app:test' }));
  const lock = { kind: 'cache', key: 'k', token: `${store.process}#1` } as const;
  await store.lead({ ...lock, lease: 1_000, follow: true });
  expect(await redis.client().keys('*')).toEqual(['app:test:{k}:lock']);
  expect(await redis.client().pubsub('CHANNELS', '*')).toContain(`app:test:wake:${store.process}`);

  const woken = new Promise((resolve) => other.onWake(resolve));
  expect(await other.lead({ ...lock, token: `${other.process}#1`, lease: 1_000, follow: true })).toMatchObject({
    is: 'waiting',
    wakes: true,
  });
  await store.end(lock);
  expect(await woken).toBe(lock.token);
});

describe('without Redis', () => {
  let proxy: FaultProxy;
  const toProxy = () => ({ port: proxy.port });
  beforeAll(async () => {
    proxy = await startProxy(redis.port);
  });
  afterAll(() => proxy.stop());
  afterEach(async () => {
    proxy.release();
    await proxy.accept();
  });

  test.each([
    ['refused', () => proxy.refuse()],
    ['never answered', () => proxy.hold()],
  ])(
    '%s: start gives up in time, commands fail soon, and all works as soon as it comes (R1, R2)',
    async (_name, away) => {
      away();
      const logger = new Log();
      const store = closeLater(newStore({ connection: toProxy(), connectTimeout: 300, commandTimeout: 200, logger }));
      const start = performance.now();
      await expect(store.start()).rejects.toThrow('No connection to Redis within 300 ms');
      expect(performance.now() - start).toBeLessThan(600);
      const asked = performance.now();
      await expect(store.read(['a'])).rejects.toThrow('No connection to Redis');
      expect(performance.now() - asked).toBeLessThan(50);

      proxy.release();
      await proxy.accept();
      const listening = untilListening(store);
      await eventually(() => works(store), { within: 4_000 });
      await listening;
      expect(logger.lines).toEqual([]);
    },
  );

  test('an outage is one line when it begins and one when it ends, of the cache', async () => {
    proxy.refuse();
    const logger = new Log();
    const store = newStore({ connection: toProxy(), connectTimeout: 300, commandTimeout: 200, logger });
    const { cache, ...stampede } = onEnd(createStampede({ store, logger }), ({ close }) => close());
    await stampede.start();
    for (let i = 0; i < 20; i++) expect(await cache.getOrLoad('key', () => 'loaded', '60s')).toBe('loaded');
    expect(logger.lines).toEqual([expect.stringMatching(/^error Trouble .*'start' failed: .*ECONNREFUSED/)]);
    await proxy.accept();
    await eventually(() => cache.getOrLoad('key', () => 'loaded', '60s').then(() => logger.lines.length > 1), {
      within: 4_000,
    });
    expect(logger.lines.slice(1)).toEqual([expect.stringMatching(/^log .* works again: \d+ commands failed/)]);
  });

  test('a function that fails is called again', async () => {
    let calls = 0;
    const connection = async () => {
      calls += 1;
      if (calls === 1) throw new Error('no secret yet');
      return redis.url;
    };
    const store = closeLater(newStore({ connection }));
    await store.start();
    expect(await works(store)).toBe(true);
    expect(calls).toBe(2);
  });

  test('closes at once, whatever the connection is doing', async () => {
    proxy.refuse();
    const refused = newStore({ connection: toProxy(), connectTimeout: 100 });
    await refused.start().catch(() => {});
    await proxy.accept();
    proxy.hold();
    const unanswered = newStore({ connection: toProxy() });
    const waiting = unanswered.start().catch((error: Error) => error.message);
    const neverStarted = newStore({ connection: toProxy() });
    const start = performance.now();
    await Promise.all([refused, unanswered, neverStarted].map((store) => store.close()));
    expect(performance.now() - start).toBeLessThan(500);
    expect(await waiting).toContain('closed');
  });
});
