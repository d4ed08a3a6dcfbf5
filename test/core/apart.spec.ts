import { describe, expect, test } from '@jest/globals';
import { CacheClosedError } from '../../lib/core/errors.js';
import { follow, slowLoader } from './loaders.js';
import { setUp } from './setting.js';

describe('nothing is global', () => {
  test('two caches in one process, each on its own store, never see each other', async () => {
    const [a, b] = [setUp(), setUp()];
    const [loadA, loadB] = [slowLoader(a.clock, 100, () => 'a'), slowLoader(b.clock, 100, () => 'b')];
    const calls = [follow(a.cache.getOrLoad('key', loadA, '60s')), follow(b.cache.getOrLoad('key', loadB, '60s'))];
    await Promise.all([a.clock.advance(100), b.clock.advance(100)]);
    expect(calls.map(({ value }) => value)).toEqual(['a', 'b']);
    await a.cache.evict('key');
    expect([await a.cache.get('key'), await b.cache.get('key')]).toEqual([undefined, 'b']);
    const [lockA, lockB] = [await a.locks.acquire('key'), await b.locks.acquire('key')];
    expect([await lockA.release(), await lockB.release()]).toEqual([true, true]);
    await a.process(0).close();
    expect(await b.cache.get('key')).toBe('b');
    expect(a.events.filter(({ type }) => type === 'evict')).toHaveLength(1);
    expect(b.events.filter(({ type }) => type === 'evict')).toHaveLength(0);
  });

  test('closing one of two on a shared store ends only its own loads', async () => {
    const { clock, processes } = setUp({ processes: 2, drainTimeout: 0 });
    const loader = slowLoader(clock, 100, (run) => run);
    const calls = processes.map(({ cache }, i) => follow(cache.getOrLoad(`key ${i}`, loader, '60s')));
    await clock.advance(10);
    void processes[0]!.close();
    await clock.advance(100);
    expect(calls[0]?.error).toBeInstanceOf(CacheClosedError);
    expect(calls[1]?.value).toBe(2);
  });

  test("a key's cache lock and its lock of the lock service never meet", async () => {
    const { clock, cache, locks } = setUp();
    const lock = await locks.acquire('key');
    const loader = slowLoader(clock, 10, (run) => run);
    const call = follow(cache.getOrLoad('key', loader, '60s'));
    await clock.advance(10);
    expect(call.value).toBe(1);
    await cache.evict('key');
    expect(await lock.release()).toBe(true);
  });
});
