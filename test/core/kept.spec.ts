import { describe, expect, test } from '@jest/globals';
import { CacheUnavailableError } from '../../lib/core/errors.js';
import { follow, slowLoader } from './loaders.js';
import { setUp } from './setting.js';

/** A store that was there and now refuses everything. */
function stage() {
  const setting = setUp({ processes: 2 });
  const { clock, cache, store, events } = setting;
  const loader = slowLoader(clock, 0, (run) => run);
  const call = (key = 'key', ttl: number | '60s' = '60s') => follow(cache.getOrLoad(key, loader, ttl));
  const ask = async (key?: string, ttl?: number | '60s') => {
    const called = call(key, ttl);
    await clock.advance(0);
    return called.value;
  };
  return { setting, clock, cache, store, events, loader, call, ask };
}

describe('while the store is away', () => {
  test('a hot key is loaded once a second, not on each call', async () => {
    const { clock, store, ask, loader, events } = stage();
    await clock.advance(10);
    store.isAway('rejects');
    expect(await ask()).toBe(1);
    for (let i = 0; i < 10; i++) {
      expect(await ask()).toBe(1);
      await clock.advance(100);
    }
    expect(loader.runs).toBe(1);
    await clock.advance(1);
    expect(await ask()).toBe(2);
    expect(events.filter(({ type }) => type === 'kept')).toHaveLength(10);
  });

  test('a ttl of less than a second is kept that long; one of 0, or a value that is not to be stored, not at all', async () => {
    const { clock, cache, store, ask, loader } = stage();
    await clock.advance(10);
    store.isAway('rejects');
    await ask('short', 100);
    await clock.advance(101);
    expect(await ask('short', 100)).toBe(2);
    await ask('none', 0);
    await ask('none', 0);
    expect(loader.runs).toBe(4);
    for (let i = 0; i < 2; i++) {
      void cache.getOrLoad('refused', loader, { ttl: '60s', cacheIf: () => false });
      await clock.advance(0);
    }
    expect(loader.runs).toBe(6);
  });

  test('isolate holds for what is kept', async () => {
    const { clock, cache, store } = stage();
    await clock.advance(10);
    store.isAway('rejects');
    const options = { ttl: '60s', isolate: 'decode' } as const;
    const [one, two] = [
      await cache.getOrLoad('key', () => ({}), options),
      await cache.getOrLoad('key', () => ({}), options),
    ];
    expect(one).toEqual(two);
    expect(one).not.toBe(two);
  });

  test.each(['evict', 'expire', 'set'] as const)('%s drops what is kept, though it fails', async (write) => {
    const { clock, cache, store, ask } = stage();
    await clock.advance(10);
    store.isAway('rejects');
    await ask();
    await (write === 'set' ? cache.set('key', 0, '60s') : cache[write]('key')).catch(() => {});
    expect(await ask()).toBe(2);
    expect(await ask()).toBe(2);
    store.works();
    await clock.advance(250);
  });

  test.each(['evict', 'expire', 'set'] as const)('what is loaded while %s is under way is not kept', async (write) => {
    const { clock, cache, store } = stage();
    await clock.advance(10);
    store.isAway();
    store.fails('read', 'rejects');
    const old = follow(cache.getOrLoad('key', () => clock.sleep(100).then(() => 'old'), '60s'));
    await clock.advance(50);
    void (write === 'set' ? cache.set('key', 0, '60s') : cache[write]('key')).catch(() => {});
    await clock.advance(500);
    expect(old.value).toBe('old');
    expect(await cache.getOrLoad('key', () => 'new', '60s')).toBe('new');
    store.works();
    await clock.advance(250);
  });

  test.each(['evict', 'expire', 'set'] as const)(
    'what was loading before %s, and ends after it, is not kept',
    async (write) => {
      const { clock, cache, store } = stage();
      await clock.advance(10);
      store.isAway('rejects');
      const old = follow(cache.getOrLoad('key', () => clock.sleep(100).then(() => 'old'), '60s'));
      await clock.advance(50);
      await (write === 'set' ? cache.set('key', 0, '60s') : cache[write]('key')).catch(() => {});
      await clock.advance(50);
      expect(old.value).toBe('old');
      expect(await cache.getOrLoad('key', () => 'new', '60s')).toBe('new');
      store.works();
      await clock.advance(250);
    },
  );

  test('as soon as it answers, what it has counts, and what was kept is gone', async () => {
    const { setting, clock, store, ask } = stage();
    await clock.advance(10);
    store.isAway('rejects');
    await ask();
    await setting.process(1).cache.set('key', 100, '60s');
    store.works();
    expect(await ask()).toBe(100);
    await setting.process(1).cache.evict('key');
    store.isAway('rejects');
    expect(await ask()).toBe(2);
  });

  test('get and has do not know what is kept, since it is nowhere stored', async () => {
    const { clock, cache, store, ask } = stage();
    await clock.advance(10);
    store.isAway('rejects');
    await ask();
    expect([await cache.get('key'), await cache.has('key')]).toEqual([undefined, false]);
  });
});

describe("onRedisError: 'throw'", () => {
  const options = { ttl: '1s', onRedisError: 'throw' } as const;

  test('a CacheUnavailableError, with the cause, and the loader is not called', async () => {
    const { cache, store, loader } = stage();
    store.isAway('rejects');
    const error = await cache.getOrLoad('key', loader, options).catch((error) => error);
    expect(error).toBeInstanceOf(CacheUnavailableError);
    expect(error).toMatchObject({ code: 'CACHE_UNAVAILABLE', cause: new Error('read was refused') });
    expect(loader.runs).toBe(0);
  });

  test('it is the choice of each caller', async () => {
    const { clock, cache, store, loader } = stage();
    store.isAway('rejects');
    const calls = [options, '60s' as const].map((option) => follow(cache.getOrLoad('key', loader, option)));
    await clock.advance(0);
    expect(calls.map(({ value, error }) => [value, error instanceof CacheUnavailableError])).toEqual([
      [undefined, true],
      [1, false],
    ]);
  });

  test('an old value that is at hand is answered first', async () => {
    const { clock, cache, store, events } = stage();
    const stale = { ...options, staleIfError: '60s' } as const;
    await cache.getOrLoad('key', () => 'old', stale);
    await clock.advance(2_000);
    store.fails('lead', 'rejects');
    expect(await cache.getOrLoad('key', () => 'unused', stale)).toBe('old');
    expect(events.at(-1)).toEqual({
      type: 'stale',
      key: 'key',
      reason: 'if-error',
      error: new Error('lead was refused'),
    });
  });

  test('a store that goes away during the load takes nothing from anybody', async () => {
    const { clock, cache, store } = stage();
    const call = follow(cache.getOrLoad('key', () => clock.sleep(100).then(() => 'loaded'), options));
    await clock.advance(50);
    store.isAway('rejects');
    await clock.advance(50);
    expect(call.value).toBe('loaded');
    store.works();
    await clock.advance(5_000);
  });
});
