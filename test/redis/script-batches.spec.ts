/** The scripts of one tick of the event loop travel as one, and each call fares as it would alone. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Cluster, Redis } from 'ioredis';
import { StoreReplyError } from '../../lib/core/errors.js';
import type { LeadRequest } from '../../lib/core/store.js';
import type { RedisStore } from '../../lib/redis/redis-store.js';
import { ScriptBatches } from '../../lib/redis/script-batches.js';
import { eventually } from '../support/eventually.js';
import { startCluster } from '../support/redis-cluster.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { startStore } from './redis-stores.js';

let redis: RedisServer;
let store: RedisStore;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client().flushall();
  store = await startStore({ connection: redis.url });
});
afterEach(() => store.close());

const keys = (count: number) => Array.from({ length: count }, (_, i) => `key${i}`);
const request = (key: string, token = `${store.process}#${key}`): LeadRequest => ({
  kind: 'cache',
  key,
  token,
  lease: 60_000,
  follow: false,
});
const locksHeld = async () => (await redis.client().keys('*:lock')).length;

describe('calls of one tick', () => {
  test('are one command for many, and each has its own reply', async () => {
    await redis.client().set('test:{key7}', '1;;1;1;7');
    await redis.client().set('test:{key9}:lock', 'other#1', 'PX', 60_000);
    // The server learns the script.
    await Promise.all([store.lead(request('a')), store.lead(request('b'))]);
    await redis.resetStats();
    const replies = await Promise.all(keys(100).map((key) => store.lead(request(key))));
    expect(await redis.commandStats()).toMatchObject({ evalsha: 8, mget: 100, set: 98 });
    expect(replies[7]).toEqual({ is: 'hit', text: '1;;1;1;7' });
    expect(replies[9]).toMatchObject({ is: 'waiting', token: 'other#1' });
    expect(replies.filter(({ is }) => is === 'leading')).toHaveLength(98);
    const ends = await Promise.all(
      keys(100).map((key, i) =>
        store.end({ kind: 'cache', key, token: request(key).token, entry: { text: `1;;1;3;${i + 100}`, px: 60_000 } }),
      ),
    );
    expect(ends.flatMap(({ is }, i) => (is === 'held' ? [] : i))).toEqual([7, 9]);
    expect(await redis.client().get('test:{key42}')).toBe('1;;1;3;142');
  });

  test.each([
    [1, 1],
    [4, 1],
    [5, 2],
    [12, 2],
    [13, 3],
    [28, 3],
    [29, 4],
    [44, 4],
    [45, 5],
  ])(
    'are few in the first command, and sixteen at most in the later ones, so that the server begins early: %i are %i',
    async (calls, commands) => {
      const lead = (prefix: string) => Promise.all(keys(calls).map((key) => store.lead(request(prefix + key))));
      // The server learns the scripts.
      await lead('first ');
      await redis.resetStats();
      expect((await lead('second ')).map(({ is }) => is)).toEqual(keys(calls).map(() => 'leading'));
      expect(await redis.commandStats()).toMatchObject({ evalsha: commands, mget: calls });
    },
  );

  test('keep their order, also among different scripts', async () => {
    const { token } = request('key');
    const replies = await Promise.all([
      store.lead(request('key')),
      store.lead(request('another')),
      store.end({ kind: 'cache', key: 'key', token }),
      store.lead(request('key', `${store.process}#2`)),
      store.replace({ key: 'key', by: 'evict' }),
      store.lead(request('key', `${store.process}#3`)),
      store.renew({ kind: 'cache', key: 'key', token: `${store.process}#2`, lease: 60_000 }),
    ]);
    expect(replies.map((reply) => (typeof reply === 'object' ? reply.is : reply))).toEqual([
      'leading',
      'leading',
      'held',
      'leading',
      undefined,
      'leading',
      'other',
    ]);
  });

  test('come before what is read after them', async () => {
    await redis.client().set('test:{key}', '1;;1;1;7');
    const [, { texts }] = await Promise.all([store.replace({ key: 'key', by: 'evict' }), store.read(['key'])]);
    expect(texts).toEqual([undefined]);
  });

  test('of the lock service and of the cache are told apart', async () => {
    const replies = await Promise.all([
      store.lead({ ...request('key'), kind: 'lock' }),
      store.lead(request('key')),
      store.lead({ ...request('another'), kind: 'lock' }),
    ]);
    expect(replies.map((reply) => reply.is === 'leading' && typeof reply.fencingToken)).toEqual([
      'number',
      'undefined',
      'number',
    ]);
  });

  test('of which one fails, the others are done', async () => {
    await redis.client().lpush('test:{bad}:lock', 'no text');
    const end = (key: string) => store.end({ kind: 'cache', key, token: request(key).token });
    await Promise.all(['good', 'better'].map((key) => store.lead(request(key))));
    const [good, bad, better] = await Promise.allSettled(['good', 'bad', 'better'].map(end));
    expect([good, better]).toEqual([
      { status: 'fulfilled', value: expect.objectContaining({ is: 'held' }) },
      { status: 'fulfilled', value: expect.objectContaining({ is: 'held' }) },
    ]);
    expect(bad).toMatchObject({ status: 'rejected', reason: expect.any(StoreReplyError) });
    expect(String((bad as PromiseRejectedResult).reason.cause ?? (bad as PromiseRejectedResult).reason)).toMatch(
      /WRONGTYPE/,
    );
  });

  test('are run where the server has forgotten the script', async () => {
    const lead = () => Promise.all(keys(3).map((key) => store.lead(request(key))));
    await lead();
    await redis.client().script('FLUSH');
    expect((await lead()).map(({ is }) => is)).toEqual(['leading', 'leading', 'leading']);
  });

  test('on a full server fail where they would have written, and leave no lock', async () => {
    await store.lead(request('held'));
    await redis.client().config('SET', 'maxmemory', '1');
    try {
      const results = await Promise.allSettled(keys(3).map((key) => store.lead(request(key))));
      expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
      const ends = await Promise.all(['held', 'free'].map((key) => store.end({ ...request(key) })));
      expect(ends.map(({ is }) => is)).toEqual(['held', 'refused']);
    } finally {
      await redis.client().config('SET', 'maxmemory', '0');
    }
    expect(await locksHeld()).toBe(0);
  });

  test('on a server that is no primary any more all have that answer, by which the client connects anew', async () => {
    const primary = await startRedis();
    const client = new Redis(redis.url, { reconnectOnError: ({ message }) => message.includes('READONLY') });
    const batches = new ScriptBatches(client);
    const script = { name: 'writeOrNot', lua: "return KEYS[1] == 'w' and redis.call('SET', KEYS[1], 1) or 1" };
    const run = () => Promise.allSettled(['r', 'w', 'r'].map((key) => batches.run(script, [key], [])));
    try {
      expect((await run()).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled']);
      await redis.client().replicaof('127.0.0.1', String(primary.port));
      const reconnects = new Promise((resolve) => client.once('reconnecting', resolve));
      const readOnly = { status: 'rejected', reason: expect.objectContaining({ message: expect.any(String) }) };
      const results = await run();
      expect(results).toEqual([readOnly, readOnly, readOnly]);
      expect(results.map((result) => String((result as PromiseRejectedResult).reason)).join()).toMatch(
        /(READONLY.*){3}/,
      );
      await reconnects;
    } finally {
      client.disconnect();
      await redis.client().replicaof('NO', 'ONE');
      await primary.stop();
    }
  });

  test('with big entries are several commands, so that none waits long for the others', async () => {
    for (const key of keys(20)) await store.lead(request(key));
    await redis.resetStats();
    const entry = { text: `1;;1;3;${'x'.repeat(20_000)}`, px: 60_000 };
    const end = (key: string) => store.end({ kind: 'cache', key, token: request(key).token, entry });
    const ends = await Promise.all(keys(20).map(end));
    expect(ends).toEqual(keys(20).map(() => ({ is: 'held', stored: true })));
    const { eval: learning = 0, evalsha = 0 } = await redis.commandStats();
    expect(learning + evalsha).toBe(7);
  });

  test.each([1, 17])(
    'that ioredis throws at, as when they are too long for any string, all fail at once: %i',
    async (calls) => {
      const client = new Redis(redis.url);
      const batches = new ScriptBatches(client);
      const { sendCommand } = client;
      client.sendCommand = () => {
        throw new RangeError('Invalid string length');
      };
      try {
        const script = { name: 'lengthOfKey', lua: 'return #KEYS[1]' };
        const run = () => Promise.allSettled(keys(calls).map((key) => batches.run(script, [key], [])));
        const failed = { status: 'rejected', reason: expect.any(RangeError) };
        expect(await run()).toEqual(Array(calls).fill(failed));
        client.sendCommand = sendCommand;
        expect((await run()).every(({ status }) => status === 'fulfilled')).toBe(true);
      } finally {
        client.disconnect();
      }
    },
  );

  test.each([
    ['', false],
    [', also where a client gathers commands by itself', true],
  ])('that were sent before a store closes still go out%s', async (_, enableAutoPipelining) => {
    const closing = await startStore({ connection: { port: redis.port, enableAutoPipelining } });
    for (const key of keys(3)) await closing.lead(request(key));
    for (const key of keys(3)) closing.end({ kind: 'cache', key, token: request(key).token }).catch(() => {});
    await closing.close();
    expect(await locksHeld()).toBe(0);
  });
});

test("by a plain connection to a Cluster's only node each is sent by itself, also of what is read, once it is known to be one", async () => {
  const node = await startRedis({ args: ['--cluster-enabled', 'yes'] });
  await node.client().cluster('ADDSLOTSRANGE', 0, 16_383);
  await eventually(async () => (await node.client().cluster('INFO')).includes('cluster_state:ok'));
  const onNode = await startStore({ connection: node.url });
  const lead = async () => (await Promise.all(keys(3).map((key) => onNode.lead(request(key))))).map(({ is }) => is);
  const read = async (withTime: boolean) => (await onNode.read(keys(3), withTime)).texts;
  try {
    expect(await lead()).toEqual(['leading', 'leading', 'leading']);
    await node.resetStats();
    expect(await lead()).toEqual(['leading', 'leading', 'leading']);
    expect(await node.commandStats()).toMatchObject({ evalsha: 3 });
    await node.client().set('test:{key1}', '1;;1;1;7');
    await node.client().lpush('test:{key2}', 'no text');
    expect(await read(false)).toEqual([undefined, '1;;1;1;7', undefined]);
    await node.resetStats();
    expect(await read(false)).toEqual([undefined, '1;;1;1;7', undefined]);
    expect(await read(true)).toEqual([undefined, '1;;1;1;7', undefined]);
    expect(await node.commandStats()).toEqual({ get: 6, time: 1 });
  } finally {
    await onNode.close();
    await node.stop();
  }
});

test('on a Cluster each script has the keys of one slot', async () => {
  const cluster = await startCluster({ primaries: 3 });
  const onCluster = await startStore({ connection: new Cluster([...cluster.startupNodes], { lazyConnect: true }) });
  try {
    const replies = await Promise.all(keys(20).map((key) => onCluster.lead(request(key))));
    expect(replies.map(({ is }) => is)).toEqual(keys(20).map(() => 'leading'));
  } finally {
    await onCluster.close();
    await cluster.stop();
  }
});
