import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, test } from '@jest/globals';
import { RemoteLoadError } from '../../lib/core/errors.js';
import { crowd, expectAll, follow, slowLoader } from './loaders.js';
import { setUp } from './setting.js';

describe('one load, however many callers', () => {
  test('S1: 50 cold concurrent calls of getOrLoad make one load', async () => {
    const { clock, cache } = setUp();
    const loader = slowLoader(clock, 100, (run) => `value ${run}`);
    const calls = crowd(50, () => cache.getOrLoad('key', loader, '60s')).map(follow);
    await clock.advance(100);
    expectAll(calls, 'value 1');
    expect(loader.runs).toBe(1);
    expect(await cache.getOrLoad('key', loader, '60s')).toBe('value 1');
    expect(loader.runs).toBe(1);
  });

  test('callers who come at any moment of a load make none of their own', async () => {
    const { clock, cache } = setUp();
    const loader = slowLoader(clock, 100, (run) => run);
    const calls = [];
    for (let i = 0; i < 30; i++) {
      calls.push(follow(cache.getOrLoad('key', loader, '60s')));
      await clock.advance(5);
    }
    expectAll(calls, 1);
    expect(loader.runs).toBe(1);
  });

  test('4 processes with 250 callers each make one load, and a process sends a few commands, not one a caller', async () => {
    const { clock, processes, sent } = setUp({ processes: 4 });
    const loader = slowLoader(clock, 100, (run) => run);
    const calls = processes.flatMap(({ cache }) => crowd(250, () => cache.getOrLoad('key', loader, '60s')).map(follow));
    await clock.advance(100);
    expectAll(calls, 1);
    expect(loader.runs).toBe(1);
    // Each reads once and leads once; the leader ends; each follower, woken, reads again.
    expect(sent()).toBe(4 + 4 + 1 + 3);
  });

  test('followers are answered at the moment in which the load ends, not at the next poll', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const loader = slowLoader(clock, 137, (run) => run);
    const calls = processes.map(({ cache }) => follow(cache.getOrLoad('key', loader, '60s')));
    await clock.advance(136);
    expect(calls.some((call) => call.settled)).toBe(false);
    await clock.advance(1);
    expectAll(calls, 1);
  });

  test('different keys load side by side', async () => {
    const { clock, cache } = setUp();
    const loader = slowLoader(clock, 100, (run) => run);
    const calls = ['a', 'b', 'c'].map((key) => follow(cache.getOrLoad(key, loader, '60s')));
    await clock.advance(100);
    expect(calls.map(({ value }) => value)).toEqual([1, 2, 3]);
    expect(loader.most).toBe(3);
  });

  test('a hit costs one read, and reads that start in one tick travel as one', async () => {
    const { cache, store } = setUp();
    for (const key of ['a', 'b', 'c']) await cache.set(key, key.toUpperCase(), '60s');
    store.sent.length = 0;
    const never = () => Promise.reject(new Error('must not load'));
    const found = await Promise.all(['a', 'b', 'c', 'a'].map((key) => cache.getOrLoad(key, never, '60s')));
    expect(found).toEqual(['A', 'B', 'C', 'A']);
    expect(store.sent).toEqual([{ command: 'read', key: 'a b c' }]);
  });

  test('a miss costs three round trips: read, lead, end', async () => {
    const { cache, store } = setUp();
    await cache.getOrLoad('key', () => 1, '60s');
    expect(store.sent.map(({ command }) => command)).toEqual(['read', 'lead', 'end']);
  });

  test('S8: a loader that throws with 10 processes and 20 callers each waiting runs once, and all get its error', async () => {
    const { clock, processes } = setUp({ processes: 10 });
    const error = Object.assign(new Error('no such product'), { code: 'E_GONE' });
    const loader = slowLoader(clock, 100, () => Promise.reject(error));
    const calls = processes.map(({ cache }) => crowd(20, () => cache.getOrLoad('key', loader, '60s')).map(follow));
    await clock.advance(100);
    expect(loader.runs).toBe(1);
    const [here = [], ...elsewhere] = calls;
    for (const call of here) expect(call.error).toBe(error);
    for (const call of elsewhere.flat()) {
      expect(call.error).toBeInstanceOf(RemoteLoadError);
      expect(call.error).toMatchObject({ name: 'Error', message: 'no such product', code: 'E_GONE' });
    }
  });

  test('S8: the call after a failure loads again', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const failing = slowLoader(clock, 100, () => Promise.reject(new Error('down')));
    const calls = processes.map(({ cache }) => follow(cache.getOrLoad('key', failing, '60s')));
    await clock.advance(100);
    expect(calls.every((call) => call.error)).toBe(true);
    expect(await processes[1]?.cache.getOrLoad('key', () => 'up', '60s')).toBe('up');
    expect(await processes[0]?.cache.getOrLoad('key', failing, '60s')).toBe('up');
    expect(failing.runs).toBe(1);
  });

  test.each([null, undefined])('S8: a loader that gives %s to the same crowd runs once', async (nothing) => {
    const { clock, processes } = setUp({ processes: 10 });
    const loader = slowLoader(clock, 100, () => nothing);
    const calls = processes.flatMap(({ cache }) => crowd(20, () => cache.getOrLoad('key', loader, '60s')).map(follow));
    await clock.advance(100);
    expectAll(calls, nothing);
    expect(loader.runs).toBe(1);
  });

  test('S9: 20 callers of a loader that fails after 1 s are all answered after 1 s', async () => {
    const { clock, processes } = setUp({ processes: 20 });
    const loader = slowLoader(clock, 1_000, () => Promise.reject(new Error('down')));
    const calls = processes.map(({ cache }) => follow(cache.getOrLoad('key', loader, '60s')));
    await clock.advance(1_000);
    expect(calls.filter((call) => call.error)).toHaveLength(20);
    expect(loader.runs).toBe(1);
  });

  test('a loader that throws instead of rejecting fails its callers alike', async () => {
    const { cache } = setUp();
    const error = new Error('at once');
    const loader = () => {
      throw error;
    };
    await expect(cache.getOrLoad('key', loader, '60s')).rejects.toBe(error);
  });

  test('the loader runs in the context of the caller that leads', async () => {
    const { clock, cache } = setUp();
    const user = new AsyncLocalStorage<string>();
    const load = async () => {
      await clock.sleep(10);
      return user.getStore();
    };
    const calls = ['ann', 'bob'].map((name) => follow(user.run(name, () => cache.getOrLoad('key', load, 0))));
    await clock.advance(10);
    expectAll(calls, 'ann');
    // Of one tick, so that their reads travel together; but each loads for itself.
    const apart = ['cyd', 'dan'].map((name) => follow(user.run(name, () => cache.getOrLoad(`${name}'s`, load, 0))));
    await clock.advance(10);
    expect(apart.map(({ value }) => value)).toEqual(['cyd', 'dan']);
  });
});
