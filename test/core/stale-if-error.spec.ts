import { describe, expect, test } from '@jest/globals';
import type { Loader } from '../../lib/core/caller.js';
import { CacheWaitTimeoutError, LoadTimeoutError } from '../../lib/core/errors.js';
import type { LoadOptions } from '../../lib/core/options.js';
import { crowd, expectAll, follow, slowLoader } from './loaders.js';
import { type Setting, type SettingOptions, setUp } from './setting.js';

const OPTIONS = { ttl: '1s', staleIfError: '60s' } as const;
const DOWN = new Error('down');

/** A value that is a second past its `ttl`, and a source that is down and takes 100 ms to say so. */
async function stage(settings: SettingOptions = {}, options: LoadOptions = OPTIONS) {
  const setting = setUp({ processes: 3, ...settings });
  await setting.cache.getOrLoad('key', () => 'old', options);
  await setting.clock.advance(2_000);
  for (const { events } of setting.processes) events.length = 0;
  const failing = slowLoader<unknown>(setting.clock, 100, () => {
    throw DOWN;
  });
  const { clock, cache, store, events } = setting;
  return { setting, clock, cache, store, events, failing };
}

function callEverywhere({ processes }: Setting, load: Loader<unknown>, options: LoadOptions = OPTIONS) {
  return processes.flatMap(({ cache }) => crowd(5, () => cache.getOrLoad('key', load, options)).map(follow));
}

describe('staleIfError', () => {
  test('the load fails: its callers and the followers elsewhere get the old value, after one load', async () => {
    const { clock, setting, failing } = await stage();
    const calls = callEverywhere(setting, failing);
    await clock.advance(99);
    expect(calls.some(({ settled }) => settled)).toBe(false);
    await clock.advance(1);
    expectAll(calls, 'old');
    expect(failing.runs).toBe(1);
    const stale = setting.processes.flatMap(({ events }) => events.filter(({ type }) => type === 'stale'));
    expect(stale).toEqual(
      calls.map(() => ({
        type: 'stale',
        key: 'key',
        reason: 'if-error',
        error: expect.objectContaining({ message: 'down' }),
      })),
    );
  });

  test('the load works: everybody gets the new value', async () => {
    const { clock, setting } = await stage();
    const calls = callEverywhere(
      setting,
      slowLoader(clock, 100, () => 'new'),
    );
    await clock.advance(100);
    expectAll(calls, 'new');
  });

  test('nothing old is at hand: the very error', async () => {
    const { cache } = setUp();
    await expect(cache.getOrLoad('key', () => Promise.reject(DOWN), OPTIONS)).rejects.toBe(DOWN);
  });

  test('a load that takes longer than maxLoad has failed', async () => {
    const { clock, cache } = await stage();
    const call = follow(cache.getOrLoad('key', () => clock.sleep(1_000), { ...OPTIONS, maxLoad: 50 }));
    await clock.advance(50);
    expect(call.value).toBe('old');
    await clock.advance(1_000);
  });

  test('within errorHoldOff nobody calls the source again, in any process; then one does', async () => {
    const { clock, setting, failing } = await stage();
    callEverywhere(setting, failing);
    await clock.advance(100);
    for (let i = 0; i < 9; i++) {
      const calls = callEverywhere(setting, failing);
      await clock.advance(0);
      expectAll(calls, 'old');
      await clock.advance(100);
    }
    expect(failing.runs).toBe(1);
    await clock.advance(100);
    const calls = callEverywhere(setting, failing);
    await clock.advance(100);
    expectAll(calls, 'old');
    expect([failing.runs, failing.most]).toEqual([2, 1]);
  });

  test('errorHoldOff is the option', async () => {
    const { clock, cache, failing } = await stage({ defaults: { errorHoldOff: '5s' } });
    for (let i = 0; i < 10; i++) {
      void cache.getOrLoad('key', failing, OPTIONS);
      await clock.advance(500);
    }
    expect(failing.runs).toBe(1);
    await clock.advance(200);
    void cache.getOrLoad('key', failing, OPTIONS);
    await clock.advance(100);
    expect(failing.runs).toBe(2);
  });

  test('errorHoldOff 0: each crowd tries once, also where followers wait', async () => {
    const options = { ...OPTIONS, errorHoldOff: 0 };
    const { clock, setting, failing } = await stage({}, options);
    for (let i = 1; i <= 3; i++) {
      const calls = callEverywhere(setting, failing, options);
      await clock.advance(110);
      expectAll(calls, 'old');
      expect(failing.runs).toBe(i);
    }
  });

  test('who has no old value at hand tries in spite of the hold-off', async () => {
    const { clock, setting, cache, failing } = await stage();
    callEverywhere(setting, failing);
    await clock.advance(200);
    const call = follow(cache.getOrLoad('key', failing, '1s'));
    await clock.advance(100);
    expect([call.error, failing.runs]).toEqual([DOWN, 2]);
  });

  test('evict and expire end the hold-off', async () => {
    const { clock, cache, failing } = await stage();
    for (const [end, runs] of [
      ['expire', 2],
      ['evict', 3],
    ] as const) {
      void cache.getOrLoad('key', failing, OPTIONS).catch(() => {});
      await clock.advance(150);
      await cache[end]('key');
      void cache.getOrLoad('key', failing, OPTIONS).catch(() => {});
      await clock.advance(100);
      expect(failing.runs).toBe(runs);
    }
  });

  test('an error that this version can not read keeps nobody from trying, and is not asked for again and again', async () => {
    const errorCodec = {
      encode: String,
      decode: () => {
        throw new Error('written by another version');
      },
    };
    const { clock, cache, store, failing } = await stage({ errorCodec });
    void cache.getOrLoad('key', failing, OPTIONS);
    await clock.advance(200);
    store.sent.length = 0;
    const call = follow(cache.getOrLoad('key', failing, OPTIONS));
    await clock.advance(100);
    expect([call.value, failing.runs, store.count('lead')]).toEqual(['old', 2, 2]);
  });

  test('shareErrors: false does not keep the old value from anybody', async () => {
    const options = { ...OPTIONS, shareErrors: false };
    const { clock, setting, failing } = await stage({}, options);
    const calls = callEverywhere(setting, failing, options);
    await clock.advance(100);
    expectAll(calls, 'old');
    expect(failing.runs).toBe(1);
  });

  test('a caller without windows who waits along gets the error, the others the old value', async () => {
    const { clock, setting, failing } = await stage();
    const [own, other] = [setting.process(0), setting.process(1)];
    const patient = [own, other].map(({ cache }) => follow(cache.getOrLoad('key', failing, OPTIONS)));
    await clock.advance(10);
    const plain = [own, other].map(({ cache }) => follow(cache.getOrLoad('key', failing, '1s')));
    await clock.advance(90);
    expectAll(patient, 'old');
    expect(plain.map(({ error }) => (error as Error).message)).toEqual(['down', 'down']);
    expect(failing.runs).toBe(1);
  });

  test('the store goes away during the load, and the load fails: the old value', async () => {
    const { clock, cache, store, failing } = await stage();
    const call = follow(cache.getOrLoad('key', failing, OPTIONS));
    await clock.advance(50);
    store.isAway('rejects');
    await clock.advance(50);
    expect(call.value).toBe('old');
    store.works();
    await clock.advance(5_000);
  });
});

describe('softTimeout', () => {
  const options = { ...OPTIONS, softTimeout: 50 } as const;

  test('the old value at its end, from the own start of each; the load goes on and fills', async () => {
    const { clock, cache } = await stage();
    const loader = slowLoader(clock, 200, () => 'new');
    const first = follow(cache.getOrLoad<string>('key', loader, options));
    await clock.advance(40);
    const second = follow(cache.getOrLoad<string>('key', loader, options));
    await clock.advance(9);
    expect(first.settled).toBe(false);
    await clock.advance(1);
    expect([first.value, second.settled]).toEqual(['old', false]);
    await clock.advance(40);
    expect(second.value).toBe('old');
    await clock.advance(110);
    expect(await cache.get('key')).toBe('new');
    expect(loader.runs).toBe(1);
  });

  test('the time that the read takes counts', async () => {
    const { clock, cache, store } = await stage();
    store.fails('read', { repliesAfter: 30 });
    const call = follow(cache.getOrLoad('key', () => clock.sleep(200).then(() => 'new'), options));
    await clock.advance(49);
    expect(call.settled).toBe(false);
    await clock.advance(1);
    expect(call.value).toBe('old');
    await clock.advance(200);
  });

  test('a load that is fast enough is waited for', async () => {
    const { clock, cache } = await stage();
    const call = follow(cache.getOrLoad('key', () => clock.sleep(49).then(() => 'new'), options));
    await clock.advance(49);
    expect(call.value).toBe('new');
  });

  test('it holds for followers, and for loads without the lock', async () => {
    const { clock, setting, cache, store } = await stage();
    const load = () => clock.sleep(200).then(() => 'new');
    const calls = callEverywhere(setting, load, options);
    await clock.advance(50);
    expectAll(calls, 'old');
    await clock.advance(150);
    await setting.process(1).cache.expire('key');
    store.fails('lead', 'rejects');
    const call = follow(cache.getOrLoad('key', load, options));
    await clock.advance(49);
    expect(call.settled).toBe(false);
    await clock.advance(1);
    expect(call.value).toBe('new');
    await clock.advance(200);
  });

  test('its event, and the failure that comes later is none of anybody', async () => {
    const { clock, cache, events, failing } = await stage();
    expect(follow(cache.getOrLoad('key', failing, options))).toBeDefined();
    await clock.advance(100);
    expect(events.filter(({ type }) => type === 'stale' || type === 'load-failed')).toEqual([
      { type: 'stale', key: 'key', reason: 'soft-timeout' },
      { type: 'load-failed', key: 'key', error: DOWN, duration: 100 },
    ]);
  });

  test('without an old value it means nothing', async () => {
    const { clock, cache } = setUp();
    const call = follow(cache.getOrLoad('key', () => clock.sleep(200).then(() => 'new'), options));
    await clock.advance(199);
    expect(call.settled).toBe(false);
    await clock.advance(1);
    expect(call.value).toBe('new');
  });

  test('abortWhenUnused does not abort the load, whose value is wanted', async () => {
    const { clock, cache } = await stage();
    const loader = slowLoader(clock, 200, () => 'new');
    const call = follow(cache.getOrLoad<string>('key', loader, { ...options, abortWhenUnused: true }));
    await clock.advance(200);
    expect([call.value, loader.signals[0]?.aborted]).toEqual(['old', false]);
    expect(await cache.get('key')).toBe('new');
  });
});

describe('S6: the load takes longer than `wait`', () => {
  const options = { ...OPTIONS, wait: 50 } as const;

  test.each(['throw', 'load'] as const)('with an old value at hand, that (onWaitTimeout %p)', async (onWaitTimeout) => {
    const { clock, setting } = await stage({ defaults: { lease: 100 } });
    const loader = slowLoader(clock, 200, () => 'new');
    void setting.process(0).cache.getOrLoad('key', loader, options);
    await clock.advance(10);
    const follower = setting.process(1);
    const calls = [OPTIONS.staleIfError, 0].map((staleIfError) =>
      follow(follower.cache.getOrLoad<string>('key', loader, { ...options, staleIfError, onWaitTimeout })),
    );
    await clock.advance(50);
    expect(calls[0]?.value).toBe('old');
    if (onWaitTimeout === 'throw') expect(calls[1]?.error).toBeInstanceOf(CacheWaitTimeoutError);
    expect(follower.events.filter(({ type }) => type === 'stale')).toEqual([
      { type: 'stale', key: 'key', reason: 'wait-timeout' },
    ]);
    expect(loader.runs).toBe(onWaitTimeout === 'throw' ? 1 : 2);
    await clock.advance(200);
  });

  test('LoadTimeoutError of another process: the old value', async () => {
    const { clock, setting } = await stage();
    const slow = () => clock.sleep(1_000);
    const leader = follow(setting.process(0).cache.getOrLoad('key', slow, { ttl: '1s', maxLoad: 100 }));
    await clock.advance(10);
    const follower = follow(setting.process(1).cache.getOrLoad('key', slow, OPTIONS));
    await clock.advance(90);
    expect(leader.error).toBeInstanceOf(LoadTimeoutError);
    expect(follower.value).toBe('old');
    await clock.advance(1_000);
  });
});
