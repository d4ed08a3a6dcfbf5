import { describe, expect, test } from '@jest/globals';
import { CacheEvictionError, CacheUnavailableError, CommandTimeoutError } from '../../lib/core/errors.js';
import { crowd, expectAll, follow, slowLoader } from './loaders.js';
import { setUp } from './setting.js';

describe('evict', () => {
  test('S7: start a load, change the source, evict: the old value is not stored, and later calls anywhere get the new one', async () => {
    const { clock, processes } = setUp({ processes: 3 });
    let source = 'old';
    const load = async () => {
      const value = source;
      await clock.sleep(100);
      return value;
    };
    const call = (index: number) => follow(processes[index]!.cache.getOrLoad('key', load, '60s'));
    const early = [call(0), call(1)];
    await clock.advance(50);
    source = 'new';
    await processes[2]?.cache.evict('key');
    const late = [call(0), call(1), call(2)];
    await clock.advance(50);
    // Who loads is answered; who followed has no proof, and goes on with the late ones.
    expect(early.map(({ value }) => value)).toEqual(['old', undefined]);
    expect(late.map(({ settled }) => settled)).toEqual([false, false, false]);
    await clock.advance(50);
    expectAll([early[1]!, ...late], 'new');
    expect(await processes[0]?.cache.get('key')).toBe('new');
  });

  test('a crowd that comes after the eviction makes one load, whatever goes on besides', async () => {
    const { clock, processes } = setUp({ processes: 4 });
    const loader = slowLoader(clock, 100, (run) => run);
    for (const { cache } of processes) void cache.getOrLoad('key', loader, '60s');
    await clock.advance(50);
    await processes[0]?.cache.evict('key');
    const calls = processes.flatMap(({ cache }) => crowd(20, () => cache.getOrLoad('key', loader, '60s')).map(follow));
    await clock.advance(200);
    expectAll(calls, 2);
    expect(loader.runs).toBe(2);
  });

  test('eviction every 80 ms against a 100 ms loader: everybody is answered in time, without a storm', async () => {
    const { clock, processes } = setUp({ processes: 10 });
    const loader = slowLoader(clock, 100, (run) => run);
    const calls = processes.flatMap(({ cache }) => crowd(20, () => cache.getOrLoad('key', loader, '60s')).map(follow));
    for (let i = 0; i < 60; i++) {
      await clock.advance(80);
      await processes[i % 10]?.cache.evict('key');
    }
    expect(calls.every(({ value }) => value !== undefined)).toBe(true);
    // At worst each process loads once for its own crowd.
    expect(loader.runs).toBeLessThanOrEqual(11);
  });

  test('several keys: it resolves when all are gone', async () => {
    const { cache } = setUp();
    for (const key of ['a', 'b', 'c']) await cache.set(key, 1, '60s');
    await cache.evict(['a', 'b', 'a']);
    expect(await Promise.all(['a', 'b', 'c'].map((key) => cache.has(key)))).toEqual([false, false, true]);
    await cache.evict([]);
  });

  test('several keys: it rejects naming those that were not acknowledged, and evicts the others', async () => {
    const { clock, cache, store } = setUp();
    for (const key of ['a', 'b', 'c']) await cache.set(key, 1, '60s');
    store.failsFor('replace', 'b', 'request lost');
    const evicting = follow(cache.evict(['a', 'b', 'c']));
    await clock.advance(500);
    expect(evicting.error).toBeInstanceOf(CacheEvictionError);
    expect(evicting.error).toMatchObject({ code: 'CACHE_EVICTION', keys: ['b'] });
    expect((evicting.error as Error).cause).toBeInstanceOf(CommandTimeoutError);
    expect(await Promise.all(['a', 'b', 'c'].map((key) => cache.has(key)))).toEqual([false, false, false]);
    // What is left of 'b' is not trusted until its eviction is made up for.
    store.works();
    expect(await cache.has('b')).toBe(false);
    await clock.advance(250);
    expect(await cache.has('b')).toBe(false);
  });

  test('an eviction that was not acknowledged ends what loads without a lock, for later callers', async () => {
    const { clock, cache, store } = setUp();
    store.isAway('rejects');
    const loader = slowLoader(clock, 100, (run) => run);
    const early = follow(cache.getOrLoad('key', loader, '60s'));
    await clock.advance(10);
    await expect(cache.evict('key')).rejects.toBeInstanceOf(CacheEvictionError);
    const late = follow(cache.getOrLoad('key', loader, '60s'));
    await clock.advance(100);
    expect([early.value, late.value]).toEqual([1, 2]);
  });

  test.each(['evict', 'expire'] as const)(
    'the late reply of %s does not end what was led since it ran',
    async (write) => {
      const setting = setUp();
      const { clock, cache, store } = setting;
      store.fails('replace', { repliesAfter: 100 });
      const writing = follow(cache[write]('key'));
      await clock.advance(10);
      const loader = slowLoader(clock, 200, (run) => run);
      const early = follow(cache.getOrLoad('key', loader, '60s'));
      await clock.advance(100);
      expect(writing.settled).toBe(true);
      const late = follow(cache.getOrLoad('key', loader, '60s'));
      await clock.advance(100);
      expectAll([early, late], 1);
      expect(await cache.get('key')).toBe(1);
      expect(setting.lockOf('key')).toBe(undefined);
    },
  );

  test('nor what a follower led since, whom it woke', async () => {
    const setting = setUp({ processes: 2 });
    const { clock, cache, store, processes } = setting;
    follow(processes[1]!.cache.getOrLoad('key', () => clock.sleep(300).then(() => 'old'), '60s'));
    await clock.advance(10);
    const call = follow(cache.getOrLoad('key', () => clock.sleep(200).then(() => 'new'), '60s'));
    await clock.advance(10);
    store.fails('replace', { repliesAfter: 100 });
    const evicting = follow(cache.evict('key'));
    await clock.advance(200);
    expect(evicting.settled).toBe(true);
    expect(call.value).toBe('new');
    expect(await cache.get('key')).toBe('new');
    expect(setting.lockOf('key')).toBe(undefined);
  });

  test('an eviction whose reply was lost ends the lease of the load here all the same', async () => {
    const { clock, cache, store } = setUp();
    store.losesWakeUps = true;
    const loader = slowLoader(clock, 1_000, (run) => run);
    const early = follow(cache.getOrLoad('key', loader, '60s'));
    await clock.advance(10);
    store.fails('replace', 'reply lost');
    const evicting = follow(cache.evict('key'));
    await clock.advance(500);
    expect(evicting.error).toBeInstanceOf(CacheEvictionError);
    // The lease was checked, and is gone: who comes now leads.
    const late = follow(cache.getOrLoad('key', () => 'new', '60s'));
    await clock.advance(10);
    expect(late.value).toBe('new');
    await clock.advance(500);
    expect(early.value).toBe(1);
  });
});

describe('set', () => {
  test('what is set is a hit everywhere', async () => {
    const { processes, events } = setUp({ processes: 2 });
    await processes[0]?.cache.set('key', { n: 1 }, '60s');
    expect(await processes[1]?.cache.get('key')).toEqual({ n: 1 });
    expect(events).toEqual([{ type: 'set', key: 'key', ttl: 60_000 }]);
  });

  test('a load that was under way does not overwrite it, and who comes later gets it', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const loader = slowLoader(clock, 100, () => 'loaded');
    const early = processes.map(({ cache }) => follow(cache.getOrLoad('key', loader, '60s')));
    await clock.advance(50);
    await processes[1]?.cache.set('key', 'set', '60s');
    const late = processes.map(({ cache }) => follow(cache.getOrLoad('key', loader, '60s')));
    await clock.advance(1);
    expectAll(late, 'set');
    // The follower looked again as it was woken.
    expect(early[1]?.value).toBe('set');
    await clock.advance(100);
    expect(early[0]?.value).toBe('loaded');
    expect(await processes[0]?.cache.get('key')).toBe('set');
    expect(loader.runs).toBe(1);
  });

  test('a late reply of its claim leaves no lock of what was led since, and every call is answered', async () => {
    const setting = setUp();
    const { clock, cache, store } = setting;
    store.fails('replace', { repliesAfter: 100 });
    const writing = follow(cache.set('key', 'set', '60s'));
    await clock.advance(10);
    setting.loseLock('key');
    const loader = slowLoader(clock, 200, (run) => run);
    const early = follow(cache.getOrLoad('key', loader, '60s'));
    await clock.advance(100);
    const late = follow(cache.getOrLoad('key', loader, '60s'));
    await clock.advance(1_000);
    expect([writing.settled, early.value, late.settled]).toEqual([true, 1, true]);
    expect(setting.lockOf('key')).toBe(undefined);
  });

  test('of two at once the first to begin never wins: when its write comes last, the key is empty', async () => {
    const setting = setUp({ processes: 2 });
    const { clock } = setting;
    setting.store.fails('end', { runsAfter: 100 });
    const first = follow(setting.cache.set('key', 'first', '60s'));
    await clock.advance(10);
    await setting.process(1).cache.set('key', 'second', '60s');
    await clock.advance(100);
    expect(first.settled).toBe(true);
    expect(await setting.cache.has('key')).toBe(false);
  });

  test('an eviction between its two steps wins', async () => {
    const setting = setUp({ processes: 2 });
    const { clock } = setting;
    setting.store.fails('end', { runsAfter: 100 });
    const setting1 = follow(setting.cache.set('key', 'set', '60s'));
    await clock.advance(10);
    await setting.process(1).cache.evict('key');
    await clock.advance(100);
    expect(setting1.settled).toBe(true);
    expect(await setting.cache.has('key')).toBe(false);
  });

  test.each(['replace', 'end'] as const)('rejects when its %s had no reply, and leaves no lock', async (command) => {
    const { clock, cache, store } = setUp();
    store.fails(command, command === 'end' ? 'reply lost' : { runsAfter: 600 });
    const setting = follow(cache.set('key', 1, '60s'));
    await clock.advance(500);
    expect(setting.error).toBeInstanceOf(CacheUnavailableError);
    await clock.advance(1_000);
  });
});

describe('expire', () => {
  test('makes what is stored a miss, and ends the load that is under way', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const [a, b] = [processes[0]!, processes[1]!];
    await a.cache.set('key', 'old', '60s');
    await a.cache.expire('key');
    expect(await b.cache.get('key')).toBe(undefined);
    const early = follow(a.cache.getOrLoad('key', () => clock.sleep(100).then(() => 'old'), '60s'));
    await clock.advance(10);
    await b.cache.expire('key');
    const late = follow(a.cache.getOrLoad('key', () => 'new', '60s'));
    await clock.advance(1);
    expect(late.value).toBe('new');
    await clock.advance(100);
    expect(early.value).toBe('old');
    expect(await b.cache.get('key')).toBe('new');
  });

  test('of nothing is nothing', async () => {
    const { cache, events } = setUp();
    await cache.expire('key');
    expect(await cache.has('key')).toBe(false);
    expect(events).toEqual([{ type: 'expire', key: 'key' }]);
  });

  test('rejects when it was not acknowledged', async () => {
    const { cache, store } = setUp();
    store.fails('replace', 'rejects');
    await expect(cache.expire('key')).rejects.toBeInstanceOf(CacheUnavailableError);
  });
});

test('of thousands of keys at once, a thousand are sent in one turn, so that replies are read in between', async () => {
  const { cache, store } = setUp();
  const keys = Array.from({ length: 2_500 }, (_, i) => `key${i}`);
  await cache.set('key2499', 1, '60s');
  const sent = store.count('replace');
  const evicted = cache.evict(keys);
  expect(store.count('replace') - sent).toBe(1_000);
  await evicted;
  expect(store.count('replace') - sent).toBe(2_500);
  expect(await cache.has('key2499')).toBe(false);
});
