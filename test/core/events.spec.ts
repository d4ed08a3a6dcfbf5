import { describe, expect, test } from '@jest/globals';
import { createStampede } from '../../lib/core/create.js';
import { MemoryStore } from '../../lib/memory/memory-store.js';
import { follow } from './loaders.js';
import { setUp } from './setting.js';

/** Whole traces: what is missing or too much fails. */
describe('events', () => {
  test('a miss, then a hit', async () => {
    const { clock, cache, events } = setUp();
    void cache.getOrLoad('key', () => clock.sleep(100), '60s');
    await clock.advance(100);
    await cache.getOrLoad('key', () => 2, '60s');
    expect(events).toEqual([
      { type: 'miss', key: 'key' },
      { type: 'load', key: 'key', alone: false, background: false },
      { type: 'fill', key: 'key', ttl: 60_000, duration: 100 },
      { type: 'hit', key: 'key' },
    ]);
  });

  test('who leaves before the answer is neither a hit nor a miss', async () => {
    const { cache, events, store } = setUp();
    const leave = (key: string) => {
      const leaving = new AbortController();
      const call = cache.getOrLoad(key, () => 1, { ttl: '60s', signal: leaving.signal });
      leaving.abort('left');
      return call;
    };
    await cache.set('there', 1, '60s');
    events.splice(0);
    await expect(leave('there')).rejects.toBe('left');
    await expect(leave('missing')).rejects.toBe('left');
    expect(events).toEqual([]);
    const asked = store.count();
    const signal = AbortSignal.abort('before');
    await expect(cache.getOrLoad('there', () => 1, { ttl: '60s', signal })).rejects.toBe('before');
    expect(store.count()).toBe(asked);
  });

  test('a crowd: a miss each, one load', async () => {
    const { clock, cache, events } = setUp();
    for (let i = 0; i < 3; i++) void cache.getOrLoad('key', () => clock.sleep(100), '60s');
    await clock.advance(100);
    expect(events.map(({ type }) => type)).toEqual(['miss', 'miss', 'miss', 'load', 'fill']);
  });

  test('two processes: one loads, the other waits and finds', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    for (const { cache } of processes) void cache.getOrLoad('key', () => clock.sleep(100), '60s');
    await clock.advance(100);
    expect(processes.map(({ events }) => events)).toEqual([
      [
        { type: 'miss', key: 'key' },
        { type: 'load', key: 'key', alone: false, background: false },
        { type: 'fill', key: 'key', ttl: 60_000, duration: 100 },
      ],
      [
        { type: 'miss', key: 'key' },
        { type: 'wait', key: 'key' },
        { type: 'hit', key: 'key' },
      ],
    ]);
  });

  test('a failure, here and in the process that waits', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const error = new Error('down');
    for (const { cache } of processes) {
      follow(cache.getOrLoad('key', () => clock.sleep(100).then(() => Promise.reject(error)), '60s'));
    }
    await clock.advance(100);
    expect(processes.map(({ events }) => events)).toEqual([
      [
        { type: 'miss', key: 'key' },
        { type: 'load', key: 'key', alone: false, background: false },
        { type: 'load-failed', key: 'key', error, duration: 100 },
      ],
      [
        { type: 'miss', key: 'key' },
        { type: 'wait', key: 'key' },
        { type: 'outcome', key: 'key' },
      ],
    ]);
  });

  test('an eviction during a load', async () => {
    const { clock, cache, events } = setUp();
    void cache.getOrLoad('key', () => clock.sleep(100), '60s');
    await clock.advance(50);
    await cache.evict('key');
    await clock.advance(50);
    expect(events).toEqual([
      { type: 'miss', key: 'key' },
      { type: 'load', key: 'key', alone: false, background: false },
      { type: 'evict', key: 'key' },
      { type: 'not-stored', key: 'key', reason: 'refused' },
    ]);
  });

  test('set, expire, evict', async () => {
    const { cache, events } = setUp();
    await cache.set('key', 1, '60s');
    await cache.expire('key');
    await cache.evict(['key', 'other']);
    expect(events).toEqual([
      { type: 'set', key: 'key', ttl: 60_000 },
      { type: 'expire', key: 'key' },
      { type: 'evict', key: 'key' },
      { type: 'evict', key: 'other' },
    ]);
  });

  test('a wait that timed out', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    void processes[1]!.cache.getOrLoad('key', () => clock.sleep(1_000), '60s');
    await clock.advance(10);
    follow(processes[0]!.cache.getOrLoad('key', () => 1, { ttl: '60s', wait: 100 }));
    await clock.advance(1_000);
    expect(processes[0]?.events).toEqual([
      { type: 'miss', key: 'key' },
      { type: 'wait', key: 'key' },
      { type: 'wait-timeout', key: 'key', waited: 100 },
    ]);
  });

  test('the life of a lock', async () => {
    const { clock, locks, events } = setUp();
    const lock = await locks.acquire('key');
    await clock.advance(3_000);
    await lock.release();
    const { fencingToken } = lock;
    expect(events).toEqual([
      { type: 'lock-acquired', key: 'key', waited: 0, fencingToken },
      { type: 'lock-released', key: 'key', held: 3_000 },
    ]);
  });

  test('a subscriber that throws disturbs nobody', async () => {
    const thrown: unknown[] = [];
    const { config } = await import('rxjs');
    config.onUnhandledError = (error) => thrown.push(error);
    const { cache, events } = setUp();
    cache.events.subscribe(() => {
      throw new Error('subscriber');
    });
    expect(await cache.getOrLoad('key', () => 1, '60s')).toBe(1);
    expect(events.map(({ type }) => type)).toEqual(['miss', 'load', 'fill']);
    await new Promise((resolve) => setTimeout(resolve, 5));
    config.onUnhandledError = null;
    expect(thrown[0]).toEqual(new Error('subscriber'));
  });

  test('without subscribers none is built', async () => {
    const { cache, close } = createStampede({ store: new MemoryStore() });
    const built: unknown[] = [];
    const subscription = cache.events.subscribe((event) => built.push(event));
    subscription.unsubscribe();
    await cache.getOrLoad('key', () => 1, '60s');
    await close();
    expect(built).toEqual([]);
  });
});
