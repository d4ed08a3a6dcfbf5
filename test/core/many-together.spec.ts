import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, test } from '@jest/globals';
import { follow, slowLoader, slowLoadMany } from './loaders.js';
import { setUp } from './setting.js';

const valuesOf = (keys: readonly string[]) => keys.map((key) => `value of ${key}`);

describe('calls for many that overlap', () => {
  test('in two processes, each leading what the other waits for: both loads start at once, one load a key', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const [one, two] = [processes[0]!.cache, processes[1]!.cache];
    // Of each process one key is slow, so that the other one leads that.
    processes[0]!.store.failsFor('lead', 'b', { runsAfter: 5 });
    processes[1]!.store.failsFor('lead', 'a', { runsAfter: 5 });
    const load = slowLoadMany(clock, 100, valuesOf);
    const calls = [one.getOrLoadMany(['a', 'b'], load, '60s'), two.getOrLoadMany(['b', 'a'], load, '60s')].map(follow);
    await clock.advance(10);
    expect(load.calls).toEqual([['a'], ['b']]);
    await clock.advance(100);
    expect(calls.map(({ value }) => value)).toEqual([valuesOf(['a', 'b']), valuesOf(['b', 'a'])]);
    expect(load.calls).toHaveLength(2);
  });

  test('in one process, in one tick and later: one load a key', async () => {
    const { clock, cache } = setUp();
    const load = slowLoadMany(clock, 100, valuesOf);
    const calls = [cache.getOrLoadMany(['a', 'b'], load, '60s'), cache.getOrLoadMany(['b', 'c'], load, '60s')];
    await clock.advance(10);
    calls.push(cache.getOrLoadMany(['d', 'c', 'a'], load, '60s'));
    const followed = calls.map(follow);
    await clock.advance(110);
    expect(followed.map(({ value }) => value)).toEqual(
      [
        ['a', 'b'],
        ['b', 'c'],
        ['d', 'c', 'a'],
      ].map(valuesOf),
    );
    expect(load.calls).toEqual([['a', 'b'], ['c'], ['d']]);
  });

  test('with a getOrLoad of one of the keys, here and elsewhere', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const [here, there] = [processes[0]!.cache, processes[1]!.cache];
    const loader = slowLoader(clock, 100, () => 'its own');
    void there.getOrLoad('a', loader, '60s');
    void here.getOrLoad('b', loader, '60s');
    await clock.advance(10);
    const load = slowLoadMany(clock, 10, valuesOf);
    const call = follow(here.getOrLoadMany(['a', 'b', 'c', 'd'], load, '60s'));
    await clock.advance(50);
    expect(load.calls).toEqual([['c', 'd']]);
    await clock.advance(50);
    expect(call.value).toEqual(['its own', 'its own', 'value of c', 'value of d']);
    expect([loader.runs, load.calls.length]).toEqual([2, 1]);
  });

  test('whoever follows many reads them together when they are woken together', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const keys = Array.from({ length: 50 }, (_, i) => `key${i}`);
    const load = slowLoadMany(clock, 100, valuesOf);
    void processes[0]!.cache.getOrLoadMany(keys, load, '60s');
    await clock.advance(10);
    const follower = processes[1]!;
    const call = follow(follower.cache.getOrLoadMany(keys, load, '60s'));
    await clock.advance(100);
    expect(call.value).toEqual(valuesOf(keys));
    expect(load.calls).toHaveLength(1);
    expect([follower.store.count('read'), follower.store.count('lead')]).toEqual([2, 50]);
  });

  test('a holder dies: one more loadMany, for all that it has left', async () => {
    const { clock, processes } = setUp({ processes: 2, defaults: { lease: 1_000 }, random: Math.random });
    const [dies, other] = [processes[0]!, processes[1]!];
    const load = slowLoadMany(clock, 100, valuesOf);
    const keys = Array.from({ length: 30 }, (_, i) => `key${i}`);
    void dies.cache.getOrLoadMany(keys, load, '60s').catch(() => {});
    await clock.advance(10);
    dies.store.crashed = true;
    const call = follow(other.cache.getOrLoadMany([...keys, 'own'], load, '60s'));
    await clock.advance(1_200);
    expect(call.value).toEqual(valuesOf([...keys, 'own']));
    expect(load.calls.map((loaded) => loaded.length)).toEqual([30, 1, 30]);
  });

  test('closed while keys are gathered that came later: they are not loaded', async () => {
    const setting = setUp({ processes: 2, defaults: { lease: 1_000 }, drainTimeout: 0 });
    const { clock, processes } = setting;
    const load = slowLoadMany(clock, 5_000, valuesOf);
    void processes[0]!.cache.getOrLoadMany(['a', 'b'], load, '60s').catch(() => {});
    await clock.advance(10);
    processes[0]!.store.crashed = true;
    const call = follow(processes[1]!.cache.getOrLoadMany(['a', 'b'], load, '60s'));
    while (processes[1]!.events.filter(({ type }) => type === 'load').length < 2) await clock.advance(1);
    const closed = follow(processes[1]!.close());
    await clock.advance(1);
    expect(closed.settled).toBe(true);
    await clock.advance(100);
    expect(call.error).toMatchObject({ code: 'CACHE_CLOSED' });
    expect(load.calls).toHaveLength(1);
    await clock.advance(5_000);
  });
});

describe('invariants hold for each key', () => {
  test('an eviction during the load: its key is not stored, the others are; later callers get a new value', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const [here, there] = [processes[0]!.cache, processes[1]!.cache];
    const load = slowLoadMany(clock, 100, (keys, call) => keys.map((key) => `${key}${call}`));
    const early = follow(here.getOrLoadMany(['a', 'b'], load, '60s'));
    await clock.advance(50);
    await there.evict('a');
    const late = follow(here.getOrLoadMany(['a', 'b'], load, '60s'));
    await clock.advance(200);
    expect(early.value).toEqual(['a1', 'b1']);
    expect(late.value).toEqual(['a2', 'b1']);
    expect(await there.getOrLoadMany(['a', 'b'], load, '60s')).toEqual(['a2', 'b1']);
    expect(load.calls).toEqual([['a', 'b'], ['a']]);
  });

  test('the lease of one key is lost: its late value is refused, and the signal goes on for the others', async () => {
    const setting = setUp({ processes: 2, defaults: { lease: 300 } });
    const { clock, processes } = setting;
    const [here, there] = [processes[0]!.cache, processes[1]!.cache];
    const load = slowLoadMany(clock, 500, valuesOf);
    const call = follow(here.getOrLoadMany(['a', 'b'], load, '60s'));
    await clock.advance(10);
    setting.loseLock('a');
    expect(await there.getOrLoad('a', () => 'newer', '60s')).toBe('newer');
    await clock.advance(500);
    expect(load.signals[0]!.aborted).toBe(false);
    expect([await here.get('a'), await here.get('b')]).toEqual(['newer', 'value of b']);
    expect(call.value?.[1]).toBe('value of b');
    expect(load.calls).toHaveLength(1);
  });

  test('S5: a loadMany of three leases is one load; each lease is renewed', async () => {
    const { clock, processes } = setUp({ processes: 2, defaults: { lease: 300 } });
    const load = slowLoadMany(clock, 900, valuesOf);
    const calls = processes.map(({ cache }) => follow(cache.getOrLoadMany(['a', 'b'], load, '60s')));
    await clock.advance(900);
    for (const { value } of calls) expect(value).toEqual(valuesOf(['a', 'b']));
    expect(load.calls).toHaveLength(1);
  });

  test('the wait of a key that somebody else loads ends', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const [here, there] = [processes[0]!.cache, processes[1]!.cache];
    void there.getOrLoad('a', () => clock.sleep(1_000), '60s');
    await clock.advance(10);
    const load = slowLoadMany(clock, 10, valuesOf);
    const options = { ttl: '60s', wait: 300 } as const;
    const throws = follow(here.getOrLoadMany(['a', 'b'], load, { ...options, errors: 'return' }));
    const loads = follow(here.getOrLoadMany(['a', 'c'], load, { ...options, onWaitTimeout: 'load' }));
    await clock.advance(350);
    expect(throws.value).toEqual([expect.objectContaining({ code: 'CACHE_WAIT_TIMEOUT' }), 'value of b']);
    expect(loads.value).toEqual(valuesOf(['a', 'c']));
    expect(load.calls).toEqual([['b'], ['c'], ['a']]);
    await clock.advance(1_000);
  });

  test('the store is away: one loadMany, nothing stored; or a CacheUnavailableError', async () => {
    const { clock, cache, store } = setUp();
    store.isAway('rejects');
    const load = slowLoadMany(clock, 10, valuesOf);
    const call = follow(cache.getOrLoadMany(['a', 'b'], load, '60s'));
    await clock.advance(10);
    expect(call.value).toEqual(valuesOf(['a', 'b']));
    expect(load.calls).toEqual([['a', 'b']]);
    const refused = cache.getOrLoadMany(['c', 'd'], load, { ttl: '60s', onRedisError: 'throw' });
    await expect(refused).rejects.toMatchObject({ code: 'CACHE_UNAVAILABLE' });
    expect(load.calls).toHaveLength(1);
  });

  test('the store is away for one key only: it is loaded with the others', async () => {
    const { clock, cache, store } = setUp();
    store.failsFor('lead', 'b', 'request lost');
    const load = slowLoadMany(clock, 10, valuesOf);
    const call = follow(cache.getOrLoadMany(['a', 'b', 'c'], load, '60s'));
    await clock.advance(520);
    expect(call.value).toEqual(valuesOf(['a', 'b', 'c']));
    expect(load.calls.flat().sort()).toEqual(['a', 'b', 'c']);
    expect([await cache.has('a'), await cache.has('b')]).toEqual([true, false]);
  });
});

describe('maxConcurrentLoads', () => {
  test('counts a loadMany as one', async () => {
    const { clock, cache } = setUp({ maxConcurrentLoads: 1 });
    const load = slowLoadMany(clock, 100, valuesOf);
    const calls = [
      ['a', 'b', 'c'],
      ['d', 'e'],
    ].map((keys) => follow(cache.getOrLoadMany(keys, load, '60s')));
    const single = follow(cache.getOrLoad('f', () => 'single', '60s'));
    await clock.advance(99);
    expect(load.calls).toHaveLength(1);
    await clock.advance(101);
    expect(calls.map(({ value }) => value)).toEqual([valuesOf(['a', 'b', 'c']), valuesOf(['d', 'e'])]);
    expect(single.value).toBe('single');
    expect(load.calls).toHaveLength(2);
  });

  test('a call inside of a loader needs no second place, nor does one inside of a loadMany', async () => {
    const { clock, cache } = setUp({ maxConcurrentLoads: 1 });
    const inner = slowLoadMany(clock, 10, valuesOf);
    const outer = async (keys: readonly string[]) => {
      const found = await cache.getOrLoadMany(
        keys.map((key) => `part of ${key}`),
        inner,
        '60s',
      );
      return found.map((value) => value.length);
    };
    const calls = [
      follow(cache.getOrLoad('x', () => cache.getOrLoadMany(['a', 'b'], inner, '60s'), '60s')),
      follow(cache.getOrLoadMany(['c', 'd'], outer, '60s')),
    ];
    await clock.advance(50);
    expect(calls.map(({ settled, error }) => [settled, error])).toEqual(calls.map(() => [true, undefined]));
    expect(inner.calls).toHaveLength(2);
  });
});

describe('old values', () => {
  const windows = { ttl: '1s', staleWhileRevalidate: '60s' } as const;

  async function stage() {
    const setting = setUp({ processes: 2 });
    const keys = ['a', 'b', 'c'];
    await setting.cache.getOrLoadMany(keys, () => ['old a', 'old b', 'old c'], windows);
    await setting.clock.advance(2_000);
    return { setting, clock: setting.clock, cache: setting.cache, keys };
  }

  test('staleWhileRevalidate: all old values at once, and one loadMany in the background, in no context', async () => {
    const { clock, cache, keys, setting } = await stage();
    const request = new AsyncLocalStorage<string>();
    const contexts: unknown[] = [];
    const load = slowLoadMany(clock, 100, (some) => {
      contexts.push(request.getStore());
      return valuesOf(some);
    });
    const call = request.run('a request', () => cache.getOrLoadMany(keys, load, windows));
    expect(await call).toEqual(['old a', 'old b', 'old c']);
    const elsewhere = setting.process(1).cache;
    expect(await elsewhere.getOrLoadMany(keys, load, windows)).toEqual(['old a', 'old b', 'old c']);
    await clock.advance(100);
    expect(load.calls).toEqual([keys]);
    expect(contexts).toEqual([undefined]);
    expect(await cache.getOrLoadMany(keys, load, windows)).toEqual(valuesOf(keys));
  });

  test('what is missing is loaded by a call of its own, which waits for no refresh', async () => {
    const { clock, cache, keys } = await stage();
    const load = slowLoadMany(clock, 100, valuesOf);
    const call = follow(cache.getOrLoadMany([...keys, 'd', 'e'], load, windows));
    await clock.advance(0);
    expect([...load.calls].sort((one, other) => one.length - other.length)).toEqual([['d', 'e'], keys]);
    await clock.advance(100);
    expect(call.value).toEqual(['old a', 'old b', 'old c', ...valuesOf(['d', 'e'])]);
  });

  test('staleIfError: a key that fails has its old value', async () => {
    const { clock, cache } = setUp();
    const options = { ttl: '1s', staleIfError: '60s' } as const;
    await cache.getOrLoadMany(['a', 'b'], () => ['old a', 'old b'], options);
    await clock.advance(2_000);
    const load = (keys: readonly string[]) => keys.map((key) => (key === 'a' ? new Error('down') : 'new b'));
    expect(await cache.getOrLoadMany(['a', 'b'], load, options)).toEqual(['old a', 'new b']);
  });
});
