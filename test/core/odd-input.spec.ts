import { describe, expect, test } from '@jest/globals';
import type { Codec } from '../../lib/core/codec.js';
import { setUp } from './setting.js';

describe('what is stored', () => {
  test.each(['1;abc;0;1;5', '1;12x;0;1;5', '1;;x;1;5', '1; ;0;1;5'])(
    'V4: %s is no entry, and is overwritten',
    async (text) => {
      const { cache, server } = setUp();
      server.entries.set('key', text, 60_000);
      expect(await cache.getOrLoad('key', () => 'loaded', '60s')).toBe('loaded');
      expect(await cache.get('key')).toBe('loaded');
    },
  );
});

describe('a codec', () => {
  const asynchronous = (encode: () => Promise<string>): Codec => ({ encode: encode as never, decode: JSON.parse });

  test.each([
    ['resolves', async () => '5'],
    ['rejects', async () => Promise.reject(new Error('later'))],
  ])('whose encode gives a promise that %s: the value is answered and not stored', async (_what, encode) => {
    const { cache, events } = setUp();
    expect(await cache.getOrLoad('key', () => 5, { ttl: '60s', codec: asynchronous(encode) })).toBe(5);
    expect(events).toContainEqual(expect.objectContaining({ type: 'not-stored', reason: 'unserializable' }));
    await expect(cache.set('key', 5, { ttl: '60s', codec: asynchronous(encode) })).rejects.toThrow(
      'must return a string',
    );
  });

  test.each(['decode', 'freeze'] as const)(
    "that can't decode: with isolate '%s' the loader's value is answered",
    async (isolate) => {
      const { cache } = setUp();
      const codec: Codec = {
        encode: JSON.stringify,
        decode: () => {
          throw new Error('no');
        },
      };
      expect(await cache.getOrLoad('key', () => [1], { ttl: '60s', codec, isolate })).toEqual([1]);
    },
  );
});

describe("isolate: 'freeze'", () => {
  test("leaves the application's own objects alone when there can be no copy", async () => {
    const { cache } = setUp();
    const pool = { next: 1 };
    await cache.getOrLoad('key', () => ({ pool, big: 1n }), { ttl: '60s', isolate: 'freeze' });
    expect(Object.isFrozen(pool)).toBe(false);
  });

  test('freezes what is nested deeply', async () => {
    const { cache } = setUp();
    const depth = 5_000;
    const codec: Codec = {
      encode: () => 'deep',
      decode: () => Array.from({ length: depth }).reduce((inner) => ({ inner }), {}),
    };
    let value = (await cache.getOrLoad('key', () => 1 as unknown, { ttl: '60s', codec, isolate: 'freeze' })) as {
      inner?: never;
    };
    for (let i = 0; i < depth && value; i++, value = value.inner as never) expect(Object.isFrozen(value)).toBe(true);
  });
});

test('loads that are caused by a loader take no slot of maxConcurrentLoads', async () => {
  const { cache, clock } = setUp({ maxConcurrentLoads: 2 });
  const nested = (key: string) =>
    cache.getOrLoad(
      key,
      async () => [await cache.getOrLoad(`${key} inner`, () => clock.sleep(10).then(() => key), '60s')],
      '60s',
    );
  const values = Promise.all(['a', 'b', 'c'].map(nested));
  await clock.advance(100);
  expect(await values).toEqual([['a'], ['b'], ['c']]);
});

test("an error that can't be encoded still travels: 1 load in two processes", async () => {
  const { clock, processes } = setUp({ processes: 2 });
  let loads = 0;
  const fail = async () => {
    loads++;
    await clock.sleep(100);
    throw Object.create(null);
  };
  const calls = Promise.allSettled(processes.map(({ cache }) => cache.getOrLoad('key', fail, '60s')));
  await clock.advance(700);
  expect((await calls).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(loads).toBe(1);
});

test.each([undefined, 42, null])('evict(%s) is a clear error', async (keys) => {
  await expect(setUp().cache.evict(keys as never)).rejects.toMatchObject({ code: 'INVALID_KEY' });
});

test('options or a function of a lock that are none are clear errors, and nothing is locked', async () => {
  const { locks } = setUp();
  await expect(locks.acquire('key', null as never)).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    option: 'options',
  });
  await expect(locks.withLock('key', (() => 1) as never, undefined as never)).rejects.toMatchObject({ option: 'run' });
  expect(await (await locks.tryAcquire('key'))?.release()).toBe(true);
});

test.each([Number.NaN, 0, -5, null, '10 s'])('extend(%s) is a clear error, and the lock is kept', async (lease) => {
  const { locks } = setUp();
  const lock = await locks.acquire('key');
  await expect(lock.extend(lease as never)).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'lease' });
  expect(await lock.release()).toBe(true);
});

test("extend('10s') renews for ten seconds", async () => {
  const { clock, locks } = setUp();
  const lock = await locks.acquire('key', { renew: false });
  await lock.extend('10s');
  await clock.advance(9_000);
  expect(lock.signal.aborted).toBe(false);
  expect(await lock.release()).toBe(true);
});
