import { describe, expect, test } from '@jest/globals';
import type { LoadOptions } from '../../lib/core/options.js';
import { follow, slowLoader } from './loaders.js';
import { setUp } from './setting.js';

const unused = () => Promise.reject(new Error('its loader is not needed'));

describe('calls of one tick for one key by the very same options', () => {
  test('are one caller: all get what the first one loads, and each has its event', async () => {
    const { clock, cache, events } = setUp();
    const load = slowLoader(clock, 100, (run) => run);
    const first = cache.getOrLoad('key', load, '60s');
    const others = [cache.getOrLoad('key', unused, '60s'), cache.getOrLoad('key', unused, '60s')];
    for (const other of others) expect(other).toBe(first);
    await clock.advance(100);
    expect(await Promise.all([first, ...others])).toEqual([1, 1, 1]);
    expect(events.map(({ type }) => type)).toEqual(['miss', 'miss', 'miss', 'load', 'fill']);
  });

  test('have an event each for a hit, too', async () => {
    const { cache, events } = setUp();
    await cache.set('key', 'value', '60s');
    events.length = 0;
    await Promise.all([cache.getOrLoad('key', unused, '60s'), cache.getOrLoad('key', unused, '60s')]);
    expect(events.map(({ type }) => type)).toEqual(['hit', 'hit']);
  });

  test('all fail when the load does', async () => {
    const { cache } = setUp();
    const load = () => Promise.reject(new RangeError('failed'));
    const calls = [load, unused].map((loader) => follow(cache.getOrLoad('key', loader, '60s')));
    await new Promise(setImmediate);
    for (const { error } of calls) expect(error).toEqual(new RangeError('failed'));
  });

  test('are for each key by themselves', async () => {
    const { cache } = setUp();
    const calls = ['a', 'b', 'a'].map((key) => cache.getOrLoad(key, async () => key, '60s'));
    expect(await Promise.all(calls)).toEqual(['a', 'b', 'a']);
    expect(calls[0]).toBe(calls[2]);
    expect(calls[0]).not.toBe(calls[1]);
  });

  const { signal } = new AbortController();
  test.each<[string, LoadOptions<object>]>([
    ['can be aborted', { ttl: '60s', signal }],
    ['get a copy of their own', { ttl: '60s', isolate: 'decode' }],
    ['get a frozen copy', { ttl: '60s', isolate: 'freeze' }],
  ])('but not when they %s', async (_what, options) => {
    const { cache } = setUp();
    const resolved = cache.resolve(options);
    const [first, second] = [0, 1].map(() => cache.getOrLoadResolved('key', async () => ({}), resolved));
    expect(first).not.toBe(second);
    expect(await Promise.all([first, second])).toEqual([{}, {}]);
  });

  test('and not by options that only look the same', async () => {
    const { cache } = setUp();
    const [first, second] = ['60s', 60_000].map((ttl) => cache.getOrLoad('key', async () => 'x', ttl as '60s'));
    expect(first).not.toBe(second);
    await Promise.all([first, second]);
  });

  test('a call of a later tick has its own time to wait', async () => {
    const { clock, processes } = setUp({ processes: 2, defaults: { wait: 1_000 } });
    void processes[0]!.cache.getOrLoad('key', () => clock.sleep(1_500), '60s');
    await clock.advance(10);
    const early = follow(processes[1]!.cache.getOrLoad('key', unused, '60s'));
    await clock.advance(700);
    const late = follow(processes[1]!.cache.getOrLoad('key', unused, '60s'));
    await clock.advance(300);
    expect(early.error).toMatchObject({ name: 'CacheWaitTimeoutError' });
    await clock.advance(500);
    expect(late.settled && late.error).toBeUndefined();
  });

  test('nor does one that goes round again take calls that have just begun', async () => {
    const { clock, cache, store } = setUp();
    const load = slowLoader(clock, 100, (run) => run);
    const first = cache.getOrLoad('key', load, '60s');
    await clock.advance(10);
    store.fails('end', { repliesAfter: 50 });
    await clock.advance(100);
    // It joins when `end` was sent, so that it goes round again, from the read, in the tick in which the first is answered.
    const again = cache.getOrLoad('key', unused, '60s');
    const late = first.then(() => [cache.getOrLoad('key', unused, '60s')]);
    await clock.advance(100);
    const [call] = await late;
    expect(call).not.toBe(again);
    expect(await Promise.all([first, again, call])).toEqual([1, 1, 1]);
  });
});
