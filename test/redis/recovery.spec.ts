import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { createStampede } from '../../lib/core/create.js';
import { formatEntry } from '../../lib/core/entry.js';
import type { RedisStore } from '../../lib/redis/redis-store.js';
import { eventually } from '../support/eventually.js';
import { type FaultProxy, startProxy, type Verdict } from '../support/fault-proxy.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { newStore, startStore, untilListening, untilListeningAgain } from './redis-stores.js';

let redis: RedisServer;
let proxy: FaultProxy;
let store: RedisStore;
let other: RedisStore;
let key = '';
let n = 0;

const text = formatEntry('1', 1);
const entry = { text, px: 60_000 };

beforeAll(async () => {
  redis = await startRedis();
  proxy = await startProxy(redis.port);
});
afterAll(async () => {
  await proxy.stop();
  await redis.stop();
});
beforeEach(async () => {
  key = `key${++n}`;
  [store, other] = await Promise.all([
    startStore({ connection: { port: proxy.port }, commandTimeout: 500 }),
    startStore({ connection: redis.url }),
  ]);
});
afterEach(async () => {
  proxy.onRequest(undefined);
  proxy.release();
  await proxy.accept();
  await Promise.all([store.close(), other.close()]);
});

const token = () => `${store.process}#${n}`;
const lead = (by = store, more = {}) =>
  by.lead({ kind: 'cache', key, token: `${by.process}#${n}`, lease: 10_000, follow: true, ...more });
const end = (more = {}) => store.end({ kind: 'cache', key, token: token(), ...more });
const lockText = () => redis.client().get(`test:{${key}}:lock`);

/** Whether it is promised a wake-up. */
const isWoken = async () => {
  const reply = await lead();
  return reply.is === 'waiting' && reply.wakes;
};

/** The fault happens to the first script of our key that is sent. */
function once(verdict: Verdict): void {
  let done = false;
  proxy.onRequest((request) => {
    if (done || !request.includes(`{${key}}`)) return 'pass';
    done = true;
    return verdict;
  });
}

test('who waits is told of a lost subscription, and polls, and of a new one', async () => {
  const woken: (string | undefined)[] = [];
  store.onWake((token) => woken.push(token));
  const before = woken.length;
  await redis.client().call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  await eventually(() => woken.length >= before + 2);
  expect(woken.slice(before)).toEqual([undefined, undefined]);
});

describe('SCRIPT FLUSH (R3)', () => {
  test('between taking the lock and releasing it', async () => {
    await lead();
    await redis.client().script('FLUSH');
    expect(await end({ entry })).toEqual({ is: 'held', stored: true });
    expect(await lockText()).toBeNull();
  });

  test('before every command', async () => {
    for (let i = 0; i < 2; i += 1) {
      await redis.client().script('FLUSH');
      expect(await lead(store, { token: `${store.process}#${i}` })).toEqual({ is: 'leading' });
      await redis.client().script('FLUSH');
      await store.renew({ kind: 'cache', key, token: `${store.process}#${i}`, lease: 1_000 });
      await redis.client().script('FLUSH');
      await store.replace({ key, by: 'evict' });
    }
  });
});

test.each(['cut', 'cutReply'] as const)(
  'a set whose connection is lost under way (%s), at either of its steps, is stored (R4)',
  async (verdict) => {
    const { cache, start, close } = createStampede({ store: newStore({ connection: { port: proxy.port } }) }, {});
    try {
      await start();
      for (const step of [1, 2]) {
        let steps = 0;
        proxy.onRequest((request) => (request.includes(`{${key}}`) && ++steps === step ? verdict : 'pass'));
        await cache.set(key, step, '60s');
        expect(await cache.get(key)).toBe(step);
      }
    } finally {
      await close();
    }
  },
);

describe.each(['cut', 'cutReply'] as const)('the connection is lost (%s) under way (R4)', (verdict) => {
  test('while taking the lock: our own token counts as taken', async () => {
    once(verdict);
    expect(await lead()).toEqual({ is: 'leading' });
    expect(await lockText()).toBe(token());
  });

  test('while registering: it is registered', async () => {
    await lead(other);
    once(verdict);
    expect(await lead()).toMatchObject({ is: 'waiting' });
    expect(await lockText()).toMatch(new RegExp(`^${other.process}#${n},`));
  });

  test('while storing: the value is there and the lock is not', async () => {
    await lead();
    once(verdict);
    expect(['held', 'refused']).toContain((await end({ entry })).is);
    expect((await store.read([key])).texts[0]).toBe(text);
    expect(await lockText()).toBeNull();
  });

  test('while renewing, evicting and reading', async () => {
    await lead();
    once(verdict);
    expect(await store.renew({ kind: 'cache', key, token: token(), lease: 10_000 })).toBe('held');
    once(verdict);
    await store.replace({ key, by: 'evict' });
    expect(await lockText()).toBeNull();
    once(verdict);
    expect((await store.read([key, 'other'])).texts).toEqual([undefined, undefined]);
  });

  test('while taking a lock of the lock service: the same fencing token', async () => {
    once(verdict);
    const { fencingToken } = (await lead(store, { kind: 'lock' })) as { fencingToken?: number };
    expect(String(fencingToken)).toBe(await redis.client().get(`test:{${key}}:fence`));
  });
});

describe('no reply', () => {
  test('one that is only late is still told', async () => {
    proxy.hold('toClient');
    const reply = lead();
    await sleep(700);
    expect(await lockText()).toBe(token());
    proxy.release();
    expect(await reply).toEqual({ is: 'leading' });
  });

  test('one that never comes: not sent again after the deadline, and the dead connection is given up', async () => {
    once('dropReply');
    await redis.resetStats();
    const reply = lead();
    await expect(reply).rejects.toThrow('No reply from Redis');
    const { eval: texts = 0, evalsha = 0 } = await redis.commandStats();
    expect(texts + evalsha).toBe(1);
    await eventually(() => lead());
  });

  test('a frozen server that goes on (R2)', async () => {
    redis.freeze();
    const reply = lead();
    await sleep(300);
    redis.thaw();
    expect(await reply).toEqual({ is: 'leading' });
  });
});

describe('the server restarts', () => {
  test('in the middle of a load: it is refused, and everything works again', async () => {
    await lead();
    const listening = untilListeningAgain(store);
    await redis.kill();
    await redis.restart();
    expect(await eventually(() => end({ entry }))).toEqual({ is: 'refused' });
    await listening;
    expect(await lead(other)).toEqual({ is: 'leading' });
    await eventually(isWoken);
  });
});

describe('the subscription', () => {
  test('is not counted on while it is lost, and is when it is back', async () => {
    await lead(other);
    expect(await lead()).toMatchObject({ wakes: true });
    await redis.client().call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await eventually(
      async () => {
        const reply = await lead();
        return reply.is === 'waiting' && !reply.wakes;
      },
      { every: 0 },
    );
    await eventually(isWoken);
  });

  test('comes back when the connection for commands does', async () => {
    await lead(other);
    const listening = untilListeningAgain(store);
    proxy.cut();
    await listening;
    await eventually(isWoken);
  });

  test('is not counted on when messages do not come through', async () => {
    proxy.onRequest((request) => (request.includes('subscribe') ? 'dropReply' : 'pass'));
    const deaf = newStore({ connection: { port: proxy.port }, connectTimeout: 200 });
    await deaf.start();
    const start = performance.now();
    await lead(other);
    expect(await lead(deaf)).toMatchObject({ is: 'waiting', wakes: false });
    const listening = untilListening(deaf);
    proxy.onRequest(undefined);
    await listening;
    expect(performance.now() - start).toBeLessThan(1_000);
    expect(await lead(deaf)).toMatchObject({ is: 'waiting', wakes: true });
    await deaf.close();
  });

  test('hands on a wake-up that comes twice (R7)', async () => {
    const woken: unknown[] = [];
    store.onWake((each) => woken.push(each));
    const channel = `test:wake:${store.process}`;
    await redis.client().publish(channel, 'a#1');
    await redis.client().publish(channel, 'a#1');
    await eventually(() => woken.length === 2);
    expect(woken).toEqual(['a#1', 'a#1']);
  });
});

test('a primary that turns replica and keeps its connections, and back (R5)', async () => {
  await store.replace({ key, by: 'evict' });
  try {
    await redis.client().replicaof('127.0.0.1', 1);
    await expect(lead()).rejects.toThrow('READONLY');
    expect((await store.read([key])).texts).toEqual([undefined]);
  } finally {
    await redis.client().replicaof('NO', 'ONE');
  }
  expect(await eventually(() => lead())).toEqual({ is: 'leading' });
});

test('a value whose bytes are no UTF-8 is overwritten', async () => {
  const bytes = Buffer.concat([Buffer.from('1;;0;9;'), Buffer.from([0xff, 0xfe, 0xf0, 0x9f])]);
  await redis.client().set(`test:{${key}}`, bytes);
  const [unreadable] = (await store.read([key])).texts;
  expect(unreadable).toContain('\ufffd');
  expect(await lead()).toMatchObject({ is: 'hit' });
  expect(await lead(store, { unreadable })).toEqual({ is: 'leading' });
  await end({ entry });
  expect(await lead(store, { unreadable })).toEqual({ is: 'hit', text });
});

test('a value of another type is nothing, and harms no other; it is overwritten', async () => {
  await redis.client().hset(`test:{${key}}`, 'field', '1');
  expect((await store.read([key])).texts).toEqual([undefined]);
  expect((await store.read(['a', key])).texts).toEqual([undefined, undefined]);
  expect(await lead()).toEqual({ is: 'leading' });
  await store.replace({ key, by: 'expire' });
  await lead();
  expect(await end({ entry })).toEqual({ is: 'held', stored: true });
});

test('a lock that somebody made permanent says that it does not end', async () => {
  await redis.client().set(`test:{${key}}:lock`, 'x#1');
  expect(await lead()).toMatchObject({ is: 'waiting', leaseLeft: Infinity });
});

test('a command that can not be sent leaves nothing held back on its connection', async () => {
  const pattern = new Redis({ port: redis.port, lazyConnect: true });
  const clients: Redis[] = [];
  const duplicate = pattern.duplicate.bind(pattern);
  pattern.duplicate = (options) => {
    const client = duplicate(options);
    clients.push(client);
    return client;
  };
  const own = await startStore({ connection: pattern, commandTimeout: 1_000 });
  const [client] = clients;
  const { get } = client!;
  // As ioredis does when it is too long for one string.
  client!.get = () => {
    throw new RangeError('Invalid string length');
  };
  await expect(own.read([key], true)).rejects.toThrow('Invalid string length');
  client!.get = get;
  expect((await own.read([key])).texts).toEqual([undefined]);
  await own.close();
});
