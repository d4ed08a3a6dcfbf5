import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { expectAll, follow, slowLoader } from './loaders.js';
import { type Setting, setUp } from './setting.js';

const WINDOW = { ttl: '1s', staleWhileRevalidate: '60s' } as const;

/** A value that is a second past its `ttl`. */
async function stage(processes = 2): Promise<Setting> {
  const setting = setUp({ processes });
  await setting.cache.getOrLoad('key', () => 'old', WINDOW);
  await setting.clock.advance(2_000);
  return setting;
}

describe('a load in the background', () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  beforeEach(() => {
    unhandled.length = 0;
    process.on('unhandledRejection', note);
  });
  afterEach(() => {
    process.off('unhandledRejection', note);
  });

  test.each([
    ['rejects', () => Promise.reject(new Error('down'))],
    [
      'throws at once',
      () => {
        throw new Error('down');
      },
    ],
    ['never ends', () => new Promise<never>(() => {})],
  ])('its loader %s: an event, and no unhandled rejection', async (_, loader) => {
    const { clock, cache, events } = await stage();
    expect(await cache.getOrLoad<string>('key', loader, { ...WINDOW, maxLoad: 500 })).toBe('old');
    await clock.advance(500);
    await new Promise((resolve) => setTimeout(resolve, 1));
    expect(events.filter(({ type }) => type === 'load-failed')).toHaveLength(1);
    expect(unhandled).toEqual([]);
  });

  test('the store is away: it is given up, and the source is not called', async () => {
    const { clock, cache, store } = await stage();
    store.fails('lead', 'rejects');
    const loader = slowLoader(clock, 0, () => 'new');
    expect(await cache.getOrLoad<string>('key', loader, WINDOW)).toBe('old');
    await clock.advance(0);
    expect(loader.runs).toBe(0);
    store.works();
    expect(await cache.getOrLoad<string>('key', loader, WINDOW)).toBe('old');
    await clock.advance(0);
    expect(loader.runs).toBe(1);
    expect(unhandled).toEqual([]);
  });

  test('another process loads already: nothing waits', async () => {
    const { clock, processes } = await stage();
    const loader = slowLoader(clock, 5_000, () => 'new');
    for (const { cache } of processes) void cache.getOrLoad<string>('key', loader, WINDOW);
    await clock.advance(10);
    expect(processes[1]?.events.map(({ type }) => type)).toEqual(['stale']);
    await clock.advance(4_000);
    expect(processes[1]?.store.count('lead')).toBe(1);
    expect(loader.runs).toBe(1);
    await clock.advance(1_000);
  });

  test('whose signal had aborted, or aborts, does not end it', async () => {
    const { clock, cache } = await stage();
    const aborting = new AbortController();
    const loader = slowLoader(clock, 100, () => 'new');
    await cache.getOrLoad<string>('key', loader, { ...WINDOW, signal: aborting.signal, abortWhenUnused: true });
    aborting.abort();
    await clock.advance(100);
    expect([await cache.get('key'), loader.signals[0]?.aborted]).toEqual(['new', false]);
  });

  test('closing waits for it, and what it loads is stored', async () => {
    const setting = await stage();
    const { clock, cache } = setting;
    await cache.getOrLoad('key', () => clock.sleep(100).then(() => 'new'), WINDOW);
    await clock.advance(0);
    const closing = follow(setting.process(0).close());
    await clock.advance(99);
    expect(closing.settled).toBe(false);
    await clock.advance(1);
    expect(closing.settled).toBe(true);
    expect(await setting.process(1).cache.get('key')).toBe('new');
  });

  test('closing ends it when drainTimeout is over', async () => {
    const setting = await stage();
    const { clock, cache } = setting;
    const loader = slowLoader(clock, 60_000, () => 'new');
    await cache.getOrLoad<string>('key', loader, WINDOW);
    await clock.advance(0);
    const closing = follow(setting.process(0).close());
    await clock.advance(5_000);
    expect([closing.settled, loader.signals[0]?.aborted, setting.lockOf('key')]).toEqual([true, true, undefined]);
    await clock.advance(60_000);
    expect(unhandled).toEqual([]);
  });

  test('of a closed cache there is none', async () => {
    const setting = await stage();
    await setting.process(0).close();
    const loader = slowLoader(setting.clock, 0, () => 'new');
    const call = follow(setting.cache.getOrLoad<string>('key', loader, WINDOW));
    await setting.clock.advance(0);
    expect(call.value).toBe('new');
  });

  describe('joined by a caller that may have no old value', () => {
    test('who gets what it loads', async () => {
      const { clock, cache } = await stage();
      const loader = slowLoader(clock, 100, () => 'new');
      await cache.getOrLoad<string>('key', loader, WINDOW);
      await clock.advance(50);
      const joined = follow(cache.getOrLoad<string>('key', loader, '1s'));
      await clock.advance(50);
      expect([joined.value, loader.runs]).toEqual(['new', 1]);
    });

    test('or its very error', async () => {
      const { clock, cache } = await stage();
      const error = new Error('down');
      await cache.getOrLoad<string>('key', () => clock.sleep(100).then(() => Promise.reject(error)), WINDOW);
      await clock.advance(50);
      const joined = follow(cache.getOrLoad('key', () => 'unused', '1s'));
      await clock.advance(50);
      expect(joined.error).toBe(error);
    });

    test('who joins before it is known who leads, and follows if it is another process', async () => {
      const setting = await stage();
      const { clock, cache, store } = setting;
      const loader = slowLoader(clock, 1_000, () => 'new');
      void setting.process(1).cache.getOrLoad<string>('key', loader, WINDOW);
      await clock.advance(0);
      store.fails('lead', { repliesAfter: 50 });
      await cache.getOrLoad<string>('key', loader, WINDOW);
      await clock.advance(10);
      store.works();
      const joined = follow(cache.getOrLoad<string>('key', loader, { ttl: '1s', wait: 2_000, onWaitTimeout: 'load' }));
      await clock.advance(1_600);
      expect([joined.value, loader.runs]).toEqual(['new', 1]);
    });

    test('who waits longer than the one in the background would: that one loads nothing by itself', async () => {
      const setting = await stage();
      const { clock, cache, store } = setting;
      const loader = slowLoader(clock, 1_000, () => 'new');
      void setting.process(1).cache.getOrLoad<string>('key', loader, WINDOW);
      await clock.advance(0);
      store.fails('lead', { repliesAfter: 50 });
      await cache.getOrLoad<string>('key', loader, { ...WINDOW, wait: 100, onWaitTimeout: 'load' });
      await clock.advance(10);
      store.works();
      const joined = follow(cache.getOrLoad<string>('key', loader, '1s'));
      await clock.advance(1_600);
      expect([joined.value, loader.runs]).toEqual(['new', 1]);
      expect(setting.events.filter(({ type }) => type === 'wait-timeout')).toEqual([]);
    });

    test('who loads alone if the store goes away', async () => {
      const { clock, cache, store } = await stage();
      store.fails('lead', { repliesAfter: 600 });
      await cache.getOrLoad<string>('key', () => 'background', WINDOW);
      await clock.advance(10);
      const joined = follow(cache.getOrLoad<string>('key', () => 'own', '1s'));
      await clock.advance(500);
      expect(joined.value).toBe('own');
      await clock.advance(200);
    });

    test('who joined after an eviction: goes round, and gets a new value', async () => {
      const setting = await stage();
      const { clock, cache } = setting;
      await cache.getOrLoad<string>('key', () => clock.sleep(100).then(() => 'evicted'), WINDOW);
      await clock.advance(50);
      const before = follow(cache.getOrLoad<string>('key', () => 'new', '1s'));
      await clock.advance(10);
      await setting.process(1).cache.evict('key');
      const after = follow(cache.getOrLoad<string>('key', () => 'new', '1s'));
      await clock.advance(100);
      expectAll([before, after], 'new');
    });
  });
});

describe('the AsyncLocalStorage context', () => {
  const requests = new AsyncLocalStorage<string>();

  test('of a load that is waited for is that of the leading caller', async () => {
    const { clock, cache } = setUp();
    const ask = () => cache.getOrLoad('key', () => clock.sleep(10).then(() => requests.getStore()), '60s');
    const calls = ['first', 'second'].map((request) => follow(requests.run(request, ask)));
    await clock.advance(10);
    expectAll(calls, 'first');
  });

  test.each([
    ['none', undefined],
    ['caller', 'request'],
  ] as const)('of a load in the background, refreshContext %p', async (refreshContext, expected) => {
    const { clock, cache } = await stage();
    const seen: unknown[] = [];
    const load = async () => {
      seen.push(requests.getStore());
      await clock.sleep(10);
      seen.push(requests.getStore());
      return 'new';
    };
    await requests.run('request', () => cache.getOrLoad('key', load, { ...WINDOW, refreshContext }));
    await clock.advance(10);
    expect(seen).toEqual([expected, expected]);
  });

  test('in the background is that in which the cache was made, also behind maxConcurrentLoads', async () => {
    const setting = requests.run('boot', () => setUp({ maxConcurrentLoads: 1 }));
    const { clock, cache } = setting;
    await cache.getOrLoad('key', () => 'old', WINDOW);
    await clock.advance(2_000);
    const seen: unknown[] = [];
    const note = async () => seen.push(requests.getStore());
    void requests.run('other', () => cache.getOrLoad('other', () => clock.sleep(100).then(note), '60s'));
    await clock.advance(0);
    await requests.run('request', () => cache.getOrLoad<unknown>('key', note, WINDOW));
    void requests.run('third', () => cache.getOrLoad('third', note, '60s'));
    await clock.advance(200);
    expect(seen).toEqual(['other', 'boot', 'third']);
  });
});
