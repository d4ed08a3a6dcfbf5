import { describe, expect, test } from '@jest/globals';
import { follow, slowLoader } from './loaders.js';
import { type Setting, setUp } from './setting.js';

describe('maxConcurrentLoads', () => {
  test('so many loaders run at once, whatever the keys; the others wait for their turn', async () => {
    const { clock, cache } = setUp({ maxConcurrentLoads: 3 });
    const loader = slowLoader(clock, 100, () => 'loaded');
    const calls = Array.from({ length: 10 }, (_, i) => follow(cache.getOrLoad(`key${i}`, loader, '60s')));
    await clock.advance(400);
    expect(calls.every(({ value }) => value === 'loaded')).toBe(true);
    expect(loader.most).toBe(3);
  });

  test('it bounds what reaches the source while the store is away', async () => {
    const { clock, cache, store } = setUp({ maxConcurrentLoads: 2 });
    store.isAway('rejects');
    const loader = slowLoader(clock, 100, () => 'loaded');
    for (let i = 0; i < 10; i++) void cache.getOrLoad(`key${i}`, loader, '60s');
    await clock.advance(500);
    expect([loader.runs, loader.most]).toEqual([10, 2]);
  });

  test('a load that fails, or is aborted, makes room; one whose maxLoad ends in the queue never runs', async () => {
    const { clock, cache } = setUp({ maxConcurrentLoads: 1 });
    const failing = () => clock.sleep(100).then(() => Promise.reject(new Error('down')));
    const first = follow(cache.getOrLoad('a', failing, '60s'));
    await clock.advance(0);
    const loader = slowLoader(clock, 0, () => 'loaded');
    const impatient = follow(cache.getOrLoad('b', loader, { ttl: '60s', maxLoad: 50 }));
    const next = follow(cache.getOrLoad('c', loader, '60s'));
    await clock.advance(100);
    expect([first.error, impatient.error]).toEqual([
      new Error('down'),
      expect.objectContaining({ code: 'LOAD_TIMEOUT' }),
    ]);
    expect([next.value, loader.runs]).toEqual(['loaded', 1]);
  });

  test('0 is no limit', async () => {
    const { clock, cache } = setUp({ maxConcurrentLoads: 0 });
    const loader = slowLoader(clock, 100, () => 'loaded');
    for (let i = 0; i < 50; i++) void cache.getOrLoad(`key${i}`, loader, '60s');
    await clock.advance(100);
    expect(loader.most).toBe(50);
  });

  describe('a loader that asks for another key keeps its place and needs no second', () => {
    const inQueue = async (ask: (process: Setting) => Promise<unknown>) => {
      const setting = setUp({ maxConcurrentLoads: 1, defaults: { onWaitTimeout: 'load' } });
      const { clock, cache } = setting;
      const config = () => ask(setting);
      const outer = follow(cache.getOrLoad('product', () => clock.sleep(20).then(config), '60s'));
      await clock.advance(0);
      // By somebody else, so it waits for a place.
      const inner = follow(config());
      await clock.advance(100);
      expect([outer.value, inner.value]).toEqual(['config', 'config']);
      // From now on there is one place again.
      const loader = slowLoader(clock, 10, () => 'loaded');
      for (const key of ['a', 'b', 'c']) void cache.getOrLoad(key, loader, '60s');
      await clock.advance(50);
      expect([loader.runs, loader.most]).toEqual([3, 1]);
    };

    test('also when that key is in the queue already', () =>
      inQueue(({ clock, cache }) => cache.getOrLoad('config', () => clock.sleep(5).then(() => 'config'), '60s')));

    test('also when it is one of many', () =>
      inQueue(({ clock, cache }) =>
        cache.getOrLoadMany(['config'], () => clock.sleep(5).then(() => ['config']), '60s').then(([value]) => value),
      ));

    test('also when it waits no longer for it', () =>
      inQueue(({ clock, cache }) =>
        cache.getOrLoad('config', () => clock.sleep(5).then(() => 'config'), { ttl: '60s', wait: 1 }),
      ));

    test('what it leaves behind when it is over waits for a place like everybody', async () => {
      const { clock, cache } = setUp({ maxConcurrentLoads: 1 });
      const loader = slowLoader(clock, 10, () => 'loaded');
      const leave = async () => {
        void clock.sleep(5).then(() => Promise.all(['a', 'b', 'c'].map((key) => cache.getOrLoad(key, loader, '60s'))));
      };
      await cache.getOrLoad('leaving', leave, '60s');
      await clock.advance(50);
      expect([loader.runs, loader.most]).toEqual([3, 1]);
    });

    test('what it waits for takes no place either when its turn comes', async () => {
      const { clock, cache } = setUp({ maxConcurrentLoads: 2 });
      const slow = () => cache.getOrLoad('slow', () => clock.sleep(1_000), '60s');
      const first = follow(cache.getOrLoad('first', () => clock.sleep(20).then(slow), '60s'));
      void cache.getOrLoad('second', () => clock.sleep(50), '60s');
      await clock.advance(1);
      void slow();
      const next = follow(cache.getOrLoad('next', () => 'next', '60s'));
      await clock.advance(60);
      expect([first.settled, next.value]).toEqual([false, 'next']);
      await clock.advance(1_000);
      expect(first.settled).toBe(true);
    });

    test('what it only has refreshed waits for a place, in its context or not', async () => {
      const { clock, cache } = setUp({ maxConcurrentLoads: 1 });
      const keys = ['a', 'b', 'c'];
      const loader = slowLoader(clock, 50, () => 'loaded');
      const options = { ttl: 100, staleWhileRevalidate: '60s', refreshContext: 'caller' } as const;
      const readAll = () => Promise.all(keys.map((key) => cache.getOrLoad(key, loader, options)));
      void readAll();
      await clock.advance(300);
      expect([loader.runs, loader.most]).toEqual([3, 1]);
      const reading = () => readAll().finally(() => clock.sleep(10));
      const outer = follow(cache.getOrLoad('outer', reading, '60s'));
      await clock.advance(300);
      expect([outer.value, loader.runs, loader.most]).toEqual([['loaded', 'loaded', 'loaded'], 6, 1]);
    });
  });
});
