import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, test } from '@jest/globals';
import { InvalidKeyError, InvalidLoadResultError, InvalidOptionError, RemoteLoadError } from '../../lib/core/errors.js';
import { follow, slowLoadMany } from './loaders.js';
import { setUp } from './setting.js';

const loadedOf = (key: string) => `value of ${key}`;
const valuesOf = (keys: readonly string[]) => keys.map(loadedOf);

describe('getOrLoadMany', () => {
  test('cold keys: one read, one loadMany, and a lead and an end a key; then hits: one read', async () => {
    const { clock, cache, store, events } = setUp();
    const keys = Array.from({ length: 100 }, (_, i) => `key${i}`);
    const load = slowLoadMany(clock, 50, valuesOf);
    const call = follow(cache.getOrLoadMany(keys, load, '60s'));
    await clock.advance(50);
    expect(call.value).toEqual(valuesOf(keys));
    expect(load.calls).toEqual([keys]);
    expect([store.count('read'), store.count('lead'), store.count('end')]).toEqual([1, 100, 100]);
    expect(events.filter(({ type }) => type === 'fill')).toHaveLength(100);

    expect(await cache.getOrLoadMany(keys, load, '60s')).toEqual(valuesOf(keys));
    expect(load.calls).toHaveLength(1);
    expect(store.count()).toBe(202);
  });

  test('only what is missing is loaded, in the order of the keys; what is stored meanwhile is not', async () => {
    const { clock, cache } = setUp();
    await cache.set('b', 'stored b', '60s');
    const load = slowLoadMany(clock, 10, valuesOf);
    const call = follow(cache.getOrLoadMany(['a', 'b', 'c'], load, '60s'));
    await clock.advance(10);
    expect(call.value).toEqual(['value of a', 'stored b', 'value of c']);
    expect(load.calls).toEqual([['a', 'c']]);
    expect(await cache.getOrLoad('c', () => 'again', '60s')).toBe('value of c');
  });

  test('equal keys are one; no keys are no command', async () => {
    const { clock, cache, store } = setUp();
    const load = slowLoadMany(clock, 10, valuesOf);
    expect(await cache.getOrLoadMany([], load, '60s')).toEqual([]);
    expect([store.count(), load.calls.length]).toEqual([0, 0]);
    const call = follow(cache.getOrLoadMany(['a', 'b', 'a'], load, '60s'));
    await clock.advance(10);
    expect(call.value).toEqual(['value of a', 'value of b', 'value of a']);
    expect(load.calls).toEqual([['a', 'b']]);
  });

  test('of which one fails, the others of its thousand are loaded and stored all the same; of later ones nothing is asked', async () => {
    const { clock, cache } = setUp();
    const keys = Array.from({ length: 2_500 }, (_, i) => `key${i}`);
    const valuesOf = (keys: readonly string[]) => keys.map((key) => (key === 'key3' ? new Error('no key3') : key));
    const load = slowLoadMany(clock, 10, valuesOf);
    const call = follow(cache.getOrLoadMany(keys, load, '60s'));
    await clock.advance(10);
    expect(call.error).toEqual(new Error('no key3'));
    await clock.advance(100);
    expect(load.calls).toHaveLength(1);
    expect(await Promise.all(['key4', 'key999', 'key1000'].map((key) => cache.has(key)))).toEqual([true, true, false]);
  });

  test('of which one fails that another loads: the call rejects at once, and no thousand begins beside the first', async () => {
    const { clock, cache } = setUp();
    const keys = Array.from({ length: 2_500 }, (_, i) => `key${i}`);
    const failing = () => clock.sleep(20).then(() => Promise.reject(new Error('no key0')));
    void cache.getOrLoad('key0', failing, '60s').catch(() => {});
    await clock.advance(1);
    const load = slowLoadMany(clock, 1_000, valuesOf);
    const call = follow(cache.getOrLoadMany(keys, load, '60s'));
    await clock.advance(30);
    expect([call.error, load.calls.length]).toEqual([new Error('no key0'), 1]);
    await clock.advance(2_000);
    expect(load.calls).toHaveLength(1);
  });

  test("the array is the call's own, whatever its caller does with it", async () => {
    const { cache } = setUp();
    const keys = ['x', 'y'];
    const call = cache.getOrLoadMany(keys, async (keys) => [...keys], '60s');
    keys.push('z');
    expect(await call).toEqual(['x', 'y']);
  });

  test('more than a thousand are done a thousand at a time', async () => {
    const { clock, cache } = setUp();
    const keys = Array.from({ length: 2_500 }, (_, i) => `key${i}`);
    const load = slowLoadMany(clock, 0, valuesOf);
    const call = follow(cache.getOrLoadMany(keys, load, '60s'));
    await clock.advance(0);
    await clock.advance(0);
    await clock.advance(0);
    expect(call.value).toEqual(valuesOf(keys));
    expect(load.calls.map(({ length }) => length)).toEqual([1_000, 1_000, 500]);
  });

  test('a Map gives values by key; a key that it has not is undefined, and stored as that', async () => {
    const { clock, cache } = setUp();
    const load = slowLoadMany(clock, 0, () => new Map([['b', 2]]));
    const [a, b] = await cache.getOrLoadMany(['a', 'b'], load, '60s');
    expect([a, b]).toEqual([undefined, 2]);
    expect(await cache.has('a')).toBe(true);
    expect(await cache.getOrLoadMany(['a', 'b'], load, '60s')).toEqual([undefined, 2]);
    expect(load.calls).toHaveLength(1);
  });

  test.each([[undefined], [null], [0], [''], [Number.NaN], [false]])('V1: %p is a value', async (value) => {
    const { clock, cache } = setUp();
    const load = slowLoadMany(clock, 0, (keys) => keys.map(() => value));
    expect(await cache.getOrLoadMany(['a', 'b'], load, '60s')).toEqual([value, value]);
    expect(await cache.getOrLoadMany(['a', 'b'], load, '60s')).toEqual([value, value]);
    expect(load.calls).toHaveLength(1);
  });

  test('cacheIf, a ttl that is a function, and isolate hold for each key', async () => {
    const { clock, cache, server } = setUp();
    const load = slowLoadMany(clock, 0, (keys) => keys.map((key) => ({ key })));
    const options = {
      ttl: ({ key }: { key: string }) => (key === 'short' ? 100 : '60s'),
      cacheIf: ({ key }: { key: string }) => key !== 'refused',
      isolate: 'freeze',
    } as const;
    const values = await cache.getOrLoadMany(['short', 'long', 'refused'], load, options);
    expect(values.every(Object.isFrozen)).toBe(true);
    expect(server.entries.timeLeft('short')).toBeLessThanOrEqual(100);
    expect(await Promise.all(['short', 'long', 'refused'].map((key) => cache.has(key)))).toEqual([true, true, false]);
  });

  test('the loader runs in the AsyncLocalStorage context of the call', async () => {
    const { clock, cache, processes } = setUp({ processes: 2 });
    const request = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const load = (keys: readonly string[]) => {
      seen.push([request.getStore(), ...keys]);
      return valuesOf(keys);
    };
    // Somebody else's, so that it is the reply to another command that decides it last.
    void processes[1]!.cache.getOrLoad('z', () => clock.sleep(100), '60s');
    await clock.advance(0);
    const calls = [['one'], ['two', 'z']].map((keys) =>
      request.run(keys[0]!, () => cache.getOrLoadMany(keys, load, '60s')),
    );
    await clock.advance(100);
    await Promise.all(calls);
    expect(seen).toEqual([
      ['one', 'one'],
      ['two', 'two'],
    ]);
  });
});

describe('an error', () => {
  test('of one key: the call gets it as it was thrown, and the others are stored', async () => {
    const { cache } = setUp();
    const error = new RangeError('no b');
    const load = (keys: readonly string[]) => keys.map((key) => (key === 'b' ? error : key));
    await expect(cache.getOrLoadMany(['a', 'b', 'c'], load, '60s')).rejects.toBe(error);
    expect(await Promise.all(['a', 'b', 'c'].map((key) => cache.has(key)))).toEqual([true, false, true]);
  });

  test("of one key, with errors: 'return': it stands in the value's place", async () => {
    const { cache } = setUp();
    const error = new RangeError('no b');
    const load = (keys: readonly string[]) => keys.map((key) => (key === 'b' ? error : key));
    const options = { ttl: '60s', errors: 'return' } as const;
    expect(await cache.getOrLoadMany(['a', 'b', 'c'], load, options)).toEqual(['a', error, 'c']);
    const map = () => new Map([['b', error]]);
    expect(await cache.getOrLoadMany(['a', 'b', 'd'], map, options)).toEqual(['a', error, undefined]);
  });

  test('of one key reaches those who wait for it in other processes', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const [leader, follower] = [processes[0]!.cache, processes[1]!.cache];
    const load = slowLoadMany(clock, 100, (keys) => keys.map((key) => (key === 'b' ? new Error('no b') : key)));
    const led = follow(leader.getOrLoadMany(['a', 'b'], load, '60s'));
    await clock.advance(10);
    const followed = follow(follower.getOrLoadMany(['a', 'b'], load, { ttl: '60s', errors: 'return' }));
    await clock.advance(100);
    expect(led.error).toEqual(new Error('no b'));
    expect(followed.value).toEqual(['a', expect.any(RemoteLoadError)]);
    expect(load.calls).toHaveLength(1);
  });

  test('of loadMany is that of every key, whatever was thrown', async () => {
    const { cache } = setUp();
    const thrown = { no: 'error' };
    const load = () => Promise.reject(thrown);
    await expect(cache.getOrLoadMany(['a', 'b'], load, '60s')).rejects.toBe(thrown);
    const [a, b] = await cache.getOrLoadMany(['a', 'b'], load, { ttl: '60s', errors: 'return' });
    expect([a, b]).toEqual([expect.any(Error), expect.any(Error)]);
    expect((a as unknown as Error).cause).toBe(thrown);
    const throws = () => {
      throw new RangeError('at once');
    };
    await expect(cache.getOrLoadMany<string>(['a', 'b'], throws, '60s')).rejects.toThrow(new RangeError('at once'));
  });

  test.each<[string, unknown, RegExp]>([
    ['too few values', [1], /1 values for 2 keys/],
    ['too many values', [1, 2, 3], /3 values for 2 keys/],
    ['no list', { a: 1, b: 2 }, /must return an array.*or a Map/],
    ['nothing', undefined, /must return an array.*or a Map/],
    ['a Map by something else', new Map([[1, 'a']]), /value for 1 \(a number\), which is none of the keys/],
  ])('loadMany returns %s', async (_, result, message) => {
    const { cache } = setUp();
    const call = cache.getOrLoadMany(['a', 'b'], () => result as string[], '60s');
    await expect(call).rejects.toThrow(InvalidLoadResultError);
    await expect(call).rejects.toThrow(message);
    expect(await cache.has('a')).toBe(false);
  });

  test('of what is asked for is told before anything is sent', async () => {
    const { cache, store } = setUp();
    const ask = cache.getOrLoadMany.bind(cache) as (...args: unknown[]) => Promise<unknown>;
    await expect(ask(['a', ''], valuesOf, '60s')).rejects.toThrow(InvalidKeyError);
    await expect(ask('a', valuesOf, '60s')).rejects.toThrow(/keys must be an array/);
    await expect(ask(['a'], 'a', '60s')).rejects.toThrow(/loadMany must be a function/);
    await expect(ask(['a'], valuesOf, '60 secs')).rejects.toThrow(InvalidOptionError);
    await expect(ask(['a'], valuesOf, { ttl: '60s', errors: 'ignore' })).rejects.toThrow(/errors must be 'throw' or/);
    expect(store.count()).toBe(0);
  });
});

describe('the end of a wait or a load', () => {
  test("the call's own signal ends it, and the load goes on", async () => {
    const { clock, cache } = setUp();
    const load = slowLoadMany(clock, 100, valuesOf);
    const leaving = new AbortController();
    const call = follow(
      cache.getOrLoadMany(['a', 'b'], load, { ttl: '60s', signal: leaving.signal, errors: 'return' }),
    );
    await clock.advance(10);
    leaving.abort(new Error('left'));
    await clock.advance(0);
    expect(call.error).toEqual(new Error('left'));
    expect(load.signals[0]!.aborted).toBe(false);
    await clock.advance(100);
    expect(await cache.has('b')).toBe(true);
    const late = cache.getOrLoadMany(['c'], load, { ttl: '60s', signal: leaving.signal });
    await expect(late).rejects.toThrow('left');
    expect(load.calls).toHaveLength(1);
  });

  test('abortWhenUnused: the signal of loadMany aborts when nobody waits for any of its keys', async () => {
    const { clock, cache } = setUp();
    const load = slowLoadMany(clock, 100, valuesOf);
    const leaving = new AbortController();
    const options = { ttl: '60s', abortWhenUnused: true } as const;
    void cache.getOrLoadMany(['a', 'b'], load, { ...options, signal: leaving.signal }).catch(() => {});
    await clock.advance(10);
    const other = follow(cache.getOrLoad('b', () => 'other', options));
    await clock.advance(10);
    leaving.abort();
    await clock.advance(0);
    // Somebody still waits for b.
    expect(load.signals[0]!.aborted).toBe(false);
    await clock.advance(80);
    expect(other.value).toBe('value of b');
    expect([await cache.has('a'), await cache.has('b')]).toEqual([false, true]);
  });

  test('maxLoad: LoadTimeoutError for every key, and the signal aborts', async () => {
    const { clock, cache } = setUp();
    const load = slowLoadMany(clock, 1_000, valuesOf);
    const call = follow(cache.getOrLoadMany(['a', 'b'], load, { ttl: '60s', maxLoad: 500, errors: 'return' }));
    await clock.advance(500);
    expect(call.value).toMatchObject([
      { code: 'LOAD_TIMEOUT', key: 'a' },
      { code: 'LOAD_TIMEOUT', key: 'b' },
    ]);
    expect(load.signals[0]!.aborted).toBe(true);
    await clock.advance(500);
  });

  test('closing: the load is waited for, then aborted', async () => {
    const setting = setUp({ drainTimeout: 1_000 });
    const { clock, cache } = setting;
    const load = slowLoadMany(clock, 5_000, valuesOf);
    const call = follow(cache.getOrLoadMany(['a', 'b'], load, '60s'));
    await clock.advance(10);
    const closed = follow(setting.process(0).close());
    await clock.advance(999);
    expect([call.settled, load.signals[0]!.aborted]).toEqual([false, false]);
    await clock.advance(1);
    expect(call.error).toMatchObject({ code: 'CACHE_CLOSED' });
    expect([closed.settled, load.signals[0]!.aborted]).toEqual([true, true]);
    await clock.advance(5_000);
  });
});
