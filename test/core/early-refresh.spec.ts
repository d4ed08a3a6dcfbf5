import { describe, expect, test } from '@jest/globals';
import { follow, slowLoader } from './loaders.js';
import { type SettingOptions, setUp } from './setting.js';

const EARLY = { ttl: '60s', earlyRefresh: true } as const;

/**
 * A value that took 1 s to load, `left` milliseconds before it expires. XFetch refreshes when `load time × beta × -ln(random)`
 * is no less than what is left: with a random number of 0.5, and beta 1, that is from 693 ms on.
 */
async function stage(left: number, { loadTime = 1_000, ...settings }: SettingOptions & { loadTime?: number } = {}) {
  const setting = setUp({ processes: 2, random: () => 0.5, ...settings });
  const { clock, cache } = setting;
  const loader = slowLoader(clock, loadTime, (run) => run);
  void cache.getOrLoad('key', loader, EARLY);
  await clock.advance(loadTime + 60_000 - left);
  return { setting, clock, cache, events: setting.events, loader };
}

describe('earlyRefresh', () => {
  test('near the end: the value at once, and one load in the background, in all processes', async () => {
    const { setting, clock, loader } = await stage(690);
    for (let i = 0; i < 5; i++) {
      const calls = setting.processes.map(({ cache }) => follow(cache.getOrLoad('key', loader, EARLY)));
      await clock.advance(10);
      expect(calls.map(({ value }) => value)).toEqual([1, 1]);
    }
    await clock.advance(1_000);
    expect([loader.runs, loader.most]).toEqual([2, 1]);
    expect(await setting.cache.get('key')).toBe(2);
  });

  test('while it runs, who has nothing to do with it gets the value, which is still fresh, at once', async () => {
    const { clock, cache, loader } = await stage(690);
    await cache.getOrLoad('key', loader, EARLY);
    await clock.advance(100);
    expect(await cache.getOrLoad('key', loader, '60s')).toBe(1);
    await clock.advance(900);
    expect(loader.runs).toBe(2);
  });

  test('calls alike of one moment have a chance each', async () => {
    // The smallest of 64 such numbers is 0.011 as likely as not, whose logarithm is 4.5.
    const { clock, cache, loader } = await stage(4_500);
    await cache.getOrLoad('key', loader, EARLY);
    await clock.advance(0);
    expect(loader.runs).toBe(1);
    const profile = cache.resolve(EARLY);
    await Promise.all(Array.from({ length: 64 }, () => cache.getOrLoadResolved('key', loader, profile)));
    await clock.advance(0);
    expect(loader.runs).toBe(2);
  });

  test('not earlier, and not again once it was refreshed', async () => {
    const { clock, cache, loader } = await stage(700);
    await cache.getOrLoad('key', loader, EARLY);
    await clock.advance(9);
    expect(loader.runs).toBe(1);
    await cache.getOrLoad('key', loader, EARLY);
    await clock.advance(1_000);
    expect(loader.runs).toBe(2);
    expect(await cache.getOrLoad('key', loader, EARLY)).toBe(2);
    await clock.advance(50_000);
    expect(loader.runs).toBe(2);
  });

  test.each([
    { left: 690, earlyRefresh: false, runs: 1 },
    { left: 690, earlyRefresh: 0.5, runs: 1 },
    { left: 340, earlyRefresh: 0.5, runs: 2 },
    { left: 6_900, earlyRefresh: 10, runs: 2 },
  ])('$left ms before its end, earlyRefresh $earlyRefresh: $runs loads', async ({ left, earlyRefresh, runs }) => {
    const { clock, cache, loader } = await stage(left);
    await cache.getOrLoad('key', loader, { ttl: '60s', earlyRefresh });
    await clock.advance(200);
    expect(loader.runs).toBe(runs);
  });

  test('off by default', async () => {
    const { clock, cache, loader } = await stage(1, { random: () => 0.999 });
    await cache.getOrLoad('key', loader, '60s');
    await clock.advance(0);
    expect(loader.runs).toBe(1);
  });

  test('the load time counts: what is loaded in no time is never refreshed early', async () => {
    const { clock, cache, loader } = await stage(1, { loadTime: 0, random: () => 0.999 });
    await cache.getOrLoad('key', loader, EARLY);
    await clock.advance(0);
    expect(loader.runs).toBe(1);
  });

  test('waiting for one of maxConcurrentLoads is no load time', async () => {
    const { clock, cache } = setUp({ maxConcurrentLoads: 1 });
    const loader = slowLoader(clock, 0, (run) => run);
    void cache.getOrLoad('other', () => clock.sleep(10_000), '60s');
    await clock.advance(0);
    void cache.getOrLoad('key', loader, EARLY);
    await clock.advance(10_000 + 59_000);
    await cache.getOrLoad('key', loader, EARLY);
    await clock.advance(100);
    expect(loader.runs).toBe(1);
  });

  test('each caller draws', async () => {
    const draws: number[] = [];
    const { clock, cache, loader } = await stage(690, { random: () => draws.shift() ?? 0 });
    draws.push(0.1, 0.1, 0.5);
    await Promise.all(Array.from({ length: 3 }, () => cache.getOrLoad('key', loader, EARLY)));
    await clock.advance(100);
    expect(loader.runs).toBe(2);
  });

  test('a source that fails is left alone for errorHoldOff', async () => {
    const { setting, clock } = await stage(690);
    const failing = slowLoader(clock, 0, () => {
      throw new Error('down');
    });
    for (let i = 0; i < 6; i++) {
      for (const { cache } of setting.processes) expect(await cache.getOrLoad<number>('key', failing, EARLY)).toBe(1);
      await clock.advance(100);
    }
    expect(failing.runs).toBe(1);
  });

  test('a process that reads before the refresh, and is answered after it, does not refresh again', async () => {
    const { setting, clock, cache, loader } = await stage(130, { loadTime: 200 });
    const slow = setting.process(1);
    slow.store.fails('read', { repliesAfter: 400 });
    const late = follow(slow.cache.getOrLoad('key', loader, EARLY));
    await cache.getOrLoad('key', loader, EARLY);
    await clock.advance(2_000);
    expect([late.settled, loader.runs]).toEqual([true, 2]);
    expect(slow.events.map(({ type }) => type)).toEqual(['hit']);
  });

  test('evict: its late write is refused', async () => {
    const { setting, clock, cache, loader } = await stage(690);
    await cache.getOrLoad('key', loader, EARLY);
    await clock.advance(100);
    await setting.process(1).cache.evict('key');
    await clock.advance(1_000);
    expect(await cache.has('key')).toBe(false);
  });

  test('its load is no hit, and no miss', async () => {
    const { clock, cache, loader, events } = await stage(690);
    events.length = 0;
    await cache.getOrLoad('key', loader, EARLY);
    await clock.advance(1_000);
    expect(events.map(({ type }) => type)).toEqual(['hit', 'load', 'fill']);
  });
});
