import { describe, expect, test } from '@jest/globals';
import type { LoadOptions } from '../../lib/core/options.js';
import { crowd, expectAll, follow, slowLoader } from './loaders.js';
import { setUp } from './setting.js';

const WINDOW = { ttl: '1s', staleWhileRevalidate: '10s' } as const;

describe('staleWhileRevalidate', () => {
  test('T2: at 2 s the old value at once and 1 load in all processes; at 12 s a miss', async () => {
    const { clock, cache, processes } = setUp({ processes: 3 });
    const loader = slowLoader(clock, 100, (run) => run);
    const first = follow(cache.getOrLoad('key', loader, WINDOW));
    await clock.advance(2_000 + 100);
    expectAll([first], 1);

    const calls = processes.flatMap(({ cache }) => crowd(10, () => cache.getOrLoad('key', loader, WINDOW)).map(follow));
    await clock.advance(0);
    expectAll(calls, 1);
    await clock.advance(100);
    expect([loader.runs, loader.most]).toEqual([2, 1]);
    const next = processes.map(({ cache }) => follow(cache.getOrLoad('key', loader, WINDOW)));
    await clock.advance(0);
    expectAll(next, 2);

    // Its 11 s are over.
    await clock.advance(11_000);
    const missing = follow(cache.getOrLoad('key', loader, WINDOW));
    await clock.advance(99);
    expect(missing.settled).toBe(false);
    await clock.advance(1);
    expectAll([missing], 3);
  });

  test('its events: stale, then a load in the background', async () => {
    const { clock, cache, events } = setUp();
    await cache.getOrLoad('key', () => 'old', WINDOW);
    await clock.advance(2_000);
    events.length = 0;
    expect(await cache.getOrLoad('key', () => 'new', WINDOW)).toBe('old');
    await clock.advance(0);
    expect(events).toEqual([
      { type: 'stale', key: 'key', reason: 'while-revalidate' },
      { type: 'load', key: 'key', alone: false, background: true },
      { type: 'fill', key: 'key', ttl: 1_000, duration: 0 },
    ]);
  });

  test('while the new value is loading, callers get the old one without waiting for it', async () => {
    const { clock, cache } = setUp();
    const loader = slowLoader(clock, 5_000, (run) => run);
    const first = follow(cache.getOrLoad('key', loader, WINDOW));
    await clock.advance(5_000 + 2_000);
    for (let i = 0; i < 4; i++) {
      const call = follow(cache.getOrLoad('key', loader, WINDOW));
      await clock.advance(1_000);
      expectAll([first, call], 1);
    }
    expect(loader.runs).toBe(2);
  });

  test('it costs one read, and one attempt to lead a process', async () => {
    const { clock, cache, store } = setUp();
    await cache.getOrLoad('key', () => 'old', WINDOW);
    await clock.advance(2_000);
    store.sent.length = 0;
    const loader = slowLoader(clock, 100, () => 'new');
    for (let i = 0; i < 5; i++) await Promise.all(crowd(10, () => cache.getOrLoad('key', loader, WINDOW)));
    expect([store.count('read'), store.count('lead')]).toEqual([5, 1]);
    await clock.advance(100);
  });

  test.each(['none', 'decode', 'freeze'] as const)('isolate %p holds for old values too', async (isolate) => {
    const { clock, cache } = setUp();
    const options = { ...WINDOW, isolate };
    await cache.getOrLoad('key', () => ({ inner: {} }), options);
    await clock.advance(2_000);
    const [one, two] = await Promise.all(crowd(2, () => cache.getOrLoad('key', () => ({ inner: {} }), options)));
    expect(one).toEqual({ inner: {} });
    expect(one === two).toBe(isolate !== 'decode');
    expect(Object.isFrozen(one?.inner)).toBe(isolate === 'freeze');
  });

  test('get and has know fresh values only', async () => {
    const { clock, cache } = setUp();
    await cache.getOrLoad('key', () => 'old', WINDOW);
    await clock.advance(999);
    expect([await cache.get('key'), await cache.has('key')]).toEqual(['old', true]);
    await clock.advance(1);
    expect([await cache.get('key'), await cache.has('key')]).toEqual([undefined, false]);
  });

  test('the window is that of the caller: who has none, or a shorter one, waits for the new value', async () => {
    const { clock, cache } = setUp();
    await cache.getOrLoad('key', () => 'old', WINDOW);
    await clock.advance(900);
    expect(await cache.getOrLoad('key', () => 'unused', '1s')).toBe('old');
    await clock.advance(2_100);
    const loader = slowLoader(clock, 100, () => 'new');
    const options: (string | LoadOptions<string>)[] = ['1s', { ttl: '1s', staleWhileRevalidate: '2s' }, WINDOW];
    const calls = options.map((option) => follow(cache.getOrLoad('key', loader, option as LoadOptions<string>)));
    await clock.advance(0);
    expect(calls.map(({ value }) => value)).toEqual([undefined, undefined, 'old']);
    await clock.advance(100);
    expect(calls.map(({ value }) => value)).toEqual(['new', 'new', 'old']);
    expect(loader.runs).toBe(1);
  });

  test('a hit costs a caller without windows one read, but for the very first', async () => {
    const { clock, cache, store } = setUp();
    await cache.getOrLoad('key', () => 'fresh', { ...WINDOW, ttl: '60s' });
    store.sent.length = 0;
    for (let i = 0; i < 5; i++) expect(await cache.getOrLoad('key', () => 'unused', '60s')).toBe('fresh');
    expect(store.sent).toEqual(Array(6).fill({ command: 'read', key: 'key' }));
    await clock.advance(60_000);
    expect(await cache.getOrLoad('key', () => 'new', '60s')).toBe('new');
  });

  test('the source fails: the old value goes on, and nobody calls it again within errorHoldOff', async () => {
    const { clock, processes } = setUp({ processes: 3 });
    await processes[0]!.cache.getOrLoad('key', () => 'old', WINDOW);
    await clock.advance(2_000);
    const loader = slowLoader(clock, 0, () => {
      throw new Error('down');
    });
    for (let i = 0; i < 10; i++) {
      const calls = processes.map(({ cache }) => follow(cache.getOrLoad('key', loader, WINDOW)));
      await clock.advance(99);
      expectAll(calls, 'old');
    }
    expect(loader.runs).toBe(1);
    await clock.advance(20);
    for (const { cache } of processes) await cache.getOrLoad('key', loader, WINDOW);
    await clock.advance(0);
    expect(loader.runs).toBe(2);
  });
});

describe('expire', () => {
  const options = { ttl: '60s', staleWhileRevalidate: '10s', staleIfError: '20s' } as const;

  test('the windows count from it', async () => {
    const { clock, cache } = setUp();
    await cache.getOrLoad('key', () => 'old', options);
    await clock.advance(5_000);
    await cache.expire('key');
    expect(await cache.has('key')).toBe(false);
    await clock.advance(9_999);
    const failing = () => Promise.reject(new Error('down'));
    expect(await cache.getOrLoad('key', failing, options)).toBe('old');
    await clock.advance(2_000);
    // Beyond staleWhileRevalidate, it has to try first.
    const tried = slowLoader(clock, 10, () => 'new');
    const call = follow(cache.getOrLoad('key', tried, options));
    await clock.advance(10);
    expect([call.value, tried.runs]).toEqual(['new', 1]);
  });

  test('beyond the windows it is a miss', async () => {
    const { clock, cache } = setUp();
    await cache.getOrLoad('key', () => 'old', options);
    await cache.expire('key');
    await clock.advance(20_000);
    const error = new Error('down');
    await expect(cache.getOrLoad('key', () => Promise.reject(error), options)).rejects.toBe(error);
  });

  test('what is stale already does not become younger by it', async () => {
    const { clock, cache } = setUp();
    await cache.getOrLoad('key', () => 'old', { ...options, ttl: '1s' });
    await clock.advance(15_000);
    await cache.expire('key');
    const call = follow(cache.getOrLoad('key', () => clock.sleep(10).then(() => 'new'), { ...options, ttl: '1s' }));
    await clock.advance(0);
    expect(call.settled).toBe(false);
    await clock.advance(10);
    expect(call.value).toBe('new');
  });

  test('an entry that was stored without windows is stale too, for those who have one', async () => {
    const { clock, cache } = setUp();
    await cache.set('key', 'old', '60s');
    await clock.advance(1_000);
    await cache.expire('key');
    const loader = slowLoader(clock, 10, () => 'new');
    const [plain, patient] = [{ ttl: '60s' } as const, options].map((option) =>
      follow(cache.getOrLoad('key', loader, option)),
    );
    await clock.advance(0);
    expect([plain?.value, patient?.value]).toEqual([undefined, 'old']);
    await clock.advance(10);
    expectAll([plain!], 'new');
    expect(loader.runs).toBe(1);
  });
});

describe('evict beats staleness', () => {
  test('nothing old is answered after it, in any process', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const options = { ...WINDOW, staleIfError: '10s', softTimeout: 5 } as const;
    await processes[0]!.cache.getOrLoad('key', () => 'old', options);
    await clock.advance(2_000);
    await processes[1]!.cache.evict('key');
    const error = new Error('down');
    const calls = processes.map(({ cache }) =>
      follow(cache.getOrLoad('key', () => clock.sleep(50).then(() => Promise.reject(error)), options)),
    );
    await clock.advance(50);
    expect(calls.map(({ value, settled }) => [value, settled])).toEqual([
      [undefined, true],
      [undefined, true],
    ]);
    expect(calls[0]?.error).toBe(error);
  });

  test('the late write of a load in the background is refused', async () => {
    const setting = setUp({ processes: 2 });
    const { clock, cache } = setting;
    await cache.getOrLoad('key', () => 'older', WINDOW);
    await clock.advance(2_000);
    expect(await cache.getOrLoad('key', () => clock.sleep(100).then(() => 'old'), WINDOW)).toBe('older');
    await clock.advance(50);
    await setting.process(1).cache.evict('key');
    await clock.advance(50);
    expect(setting.events.at(-1)).toEqual({ type: 'not-stored', key: 'key', reason: 'refused' });
    expect(await cache.has('key')).toBe(false);
    expect(await cache.getOrLoad('key', () => 'new', WINDOW)).toBe('new');
  });

  test('a caller who joins a load in the background after it gets a new value', async () => {
    const setting = setUp({ processes: 2 });
    const { clock, cache } = setting;
    await cache.getOrLoad('key', () => 'older', WINDOW);
    await clock.advance(2_000);
    setting.store.losesWakeUps = true;
    await cache.getOrLoad('key', () => clock.sleep(100).then(() => 'old'), WINDOW);
    await clock.advance(50);
    await setting.process(1).cache.evict('key');
    const late = [WINDOW, '1s' as const].map((option) => follow(cache.getOrLoad('key', () => 'new', option)));
    await clock.advance(60);
    expectAll(late, 'new');
  });

  test('proof: an old value that is read, and evicted before the reply comes, is for those who had asked before', async () => {
    const setting = setUp({ processes: 2 });
    const { clock, cache, store } = setting;
    await cache.getOrLoad('key', () => 'old', WINDOW);
    await clock.advance(2_000);
    store.fails('read', { repliesAfter: 100 });
    const early = follow(cache.getOrLoad('key', () => 'new', WINDOW));
    await clock.advance(10);
    await setting.process(1).cache.evict('key');
    const late = follow(cache.getOrLoad('key', () => 'new', WINDOW));
    await clock.advance(200);
    expect([early.value, late.value]).toEqual(['old', 'new']);
  });

  test('proof: an old value is given when the load fails only to those whose own read found it', async () => {
    const setting = setUp({ processes: 2 });
    const { clock, cache } = setting;
    const options = { ttl: '1s', staleIfError: '10s' } as const;
    await cache.getOrLoad('key', () => 'old', options);
    await clock.advance(2_000);
    setting.store.losesWakeUps = true;
    const error = new Error('down');
    const load = () => clock.sleep(100).then(() => Promise.reject(error));
    const early = follow(cache.getOrLoad('key', load, options));
    await clock.advance(50);
    await setting.process(1).cache.evict('key');
    const late = follow(cache.getOrLoad('key', load, options));
    await clock.advance(200);
    expect([early.value, early.error]).toEqual(['old', undefined]);
    expect([late.value, late.error]).toEqual([undefined, error]);
  });
});
