import { describe, expect, test } from '@jest/globals';
import { CacheClosedError } from '../../lib/core/errors.js';
import { crowd, expectAll, follow, slowLoader } from './loaders.js';
import { setUp } from './setting.js';

/** After each of these, as after every test here, there is no lock and no timer left: `setUp` looks. */
describe('close', () => {
  test('waits for the loads that run; they are stored, and their callers answered', async () => {
    const setting = setUp({ processes: 2 });
    const { clock, cache, processes } = setting;
    const loader = slowLoader(clock, 1_000, (run) => run);
    const calls = processes.map((process) => follow(process.cache.getOrLoad('key', loader, '60s')));
    await clock.advance(10);
    const closing = follow(processes[0]!.close());
    await clock.advance(980);
    expect(closing.settled).toBe(false);
    await clock.advance(10);
    expect(closing.settled).toBe(true);
    expectAll(calls, 1);
    expect(await processes[1]?.cache.get('key')).toBe(1);
    expect(await cache.get('key')).toBe(undefined);
  });

  test('aborts what still runs after drainTimeout: callers get CacheClosedError, the lock is released, others lead', async () => {
    const setting = setUp({ processes: 2, drainTimeout: '2s' });
    const { clock, processes, store } = setting;
    const loader = slowLoader(clock, 4_000, (run) => run);
    const calls = crowd(5, () => processes[0]!.cache.getOrLoad('key', loader, '60s')).map(follow);
    await clock.advance(10);
    const follower = follow(processes[1]!.cache.getOrLoad('key', loader, '60s'));
    await clock.advance(10);
    const closing = follow(processes[0]!.close());
    await clock.advance(2_000);
    expect(closing.settled).toBe(true);
    for (const { error } of calls) {
      expect(error).toBeInstanceOf(CacheClosedError);
      expect(error).toMatchObject({ code: 'CACHE_CLOSED' });
    }
    expect(loader.signals[0]?.reason).toMatchObject({ name: 'AbortError' });
    expect(store.sent.at(-1)).toEqual({ command: 'end', key: 'key' });
    // A shutdown doesn't travel: the follower leads at once.
    expect(loader.runs).toBe(2);
    await clock.advance(4_000);
    expect(follower.value).toBe(2);
  });

  test('ends the waiting of followers', async () => {
    const setting = setUp({ processes: 2, drainTimeout: 0 });
    const { clock, processes } = setting;
    void processes[1]!.cache.getOrLoad('key', () => clock.sleep(1_000), '60s');
    await clock.advance(10);
    const call = follow(processes[0]!.cache.getOrLoad('key', () => 1, '60s'));
    await clock.advance(10);
    const closing = follow(processes[0]!.close());
    await clock.advance(0);
    expect(closing.settled).toBe(true);
    expect(call.error).toBeInstanceOf(CacheClosedError);
    await clock.advance(1_000);
  });

  test("ends a load of a wait that timed out under 'load'", async () => {
    const setting = setUp({ processes: 2, drainTimeout: 0 });
    const { clock, processes } = setting;
    void processes[1]!.cache.getOrLoad('key', () => clock.sleep(1_000), '60s');
    await clock.advance(10);
    const own = slowLoader(clock, 500, () => 'own');
    const options = { ttl: '60s', wait: 100, onWaitTimeout: 'load' } as const;
    const call = follow(processes[0]!.cache.getOrLoad('key', own, options));
    await clock.advance(100);
    void processes[0]!.close();
    await clock.advance(0);
    expect(call.error).toBeInstanceOf(CacheClosedError);
    expect(own.signals[0]?.aborted).toBe(true);
    await clock.advance(1_000);
  });

  test.each(Array.from({ length: 16 }, (_, ticks) => ticks))(
    'a call that came %p ticks before it is answered, and leaves no lock, whatever it was about to do',
    async (ticks) => {
      const setting = setUp();
      const { clock, cache } = setting;
      const loader = slowLoader(clock, 100, (run) => run);
      const call = follow(cache.getOrLoad('key', loader, '60s'));
      await new Promise<void>((resolve) => process.nextTick(resolve));
      for (let tick = 0; tick < ticks; tick++) await undefined;
      const closing = follow(setting.process(0).close());
      await clock.advance(100);
      expect(closing.settled).toBe(true);
      expectAll([call], 1);
      expect(setting.lockOf('key')).toBe(undefined);
    },
  );

  test.each(Array.from({ length: 12 }, (_, ticks) => ticks))(
    'a set that began %p ticks before it is whole, or rejects, and leaves no lock',
    async (ticks) => {
      const setting = setUp();
      const { clock, server } = setting;
      const set = follow(setting.cache.set('key', 'set', '60s'));
      for (let tick = 0; tick < ticks; tick++) await undefined;
      await setting.process(0).close();
      await clock.advance(0);
      expect(set).toEqual({ value: undefined, error: undefined, settled: true });
      expect(server.entries.get('key')).toContain('set');
      expect(setting.lockOf('key')).toBe(undefined);
    },
  );

  test('calls that go on coming do not keep it open, and leave no lock', async () => {
    const setting = setUp({ drainTimeout: '1s' });
    const { clock, cache, processes } = setting;
    const loader = slowLoader(clock, 100, (run) => run);
    const calls = [];
    let closing: ReturnType<typeof follow<void>> | undefined;
    for (let i = 0; i < 300; i++) {
      if (i === 50) closing = follow(processes[0]!.close());
      calls.push(follow(cache.getOrLoad(`key ${i}`, loader, '60s')));
      await clock.advance(7);
    }
    expect(closing?.settled).toBe(true);
    await clock.advance(200);
    expect(setting.locksLeft).toEqual([]);
    for (const call of calls) expect(call.value !== undefined || call.error instanceof CacheClosedError).toBe(true);
  });

  test('calls and sets that come while it waits for its last releases take no lock', async () => {
    const setting = setUp({ drainTimeout: 0 });
    const { clock, cache, processes, store } = setting;
    const first = follow(cache.getOrLoad('key', () => clock.sleep(500), '60s'));
    await clock.advance(10);
    store.fails('end', { repliesAfter: 200 });
    const closing = follow(processes[0]!.close());
    await clock.advance(100);
    const late = follow(cache.getOrLoad('late', () => clock.sleep(300).then(() => 'alone'), '60s'));
    const set = follow(cache.set('set', 1, '60s'));
    await clock.advance(100);
    expect(first.error).toBeInstanceOf(CacheClosedError);
    expect(set.error).toMatchObject({ code: 'CACHE_UNAVAILABLE', cause: expect.any(CacheClosedError) });
    expect(closing.settled).toBe(true);
    await clock.advance(300);
    expect(late.value).toBe('alone');
    expect(setting.locksLeft).toEqual([]);
  });

  test('a set that waits for its replies is waited for', async () => {
    const setting = setUp();
    const { clock, cache, processes, server, store } = setting;
    store.fails('replace', { repliesAfter: 50 });
    store.fails('end', { repliesAfter: 50 });
    const set = follow(cache.set('key', 'set', '60s'));
    await clock.advance(10);
    const closing = follow(processes[0]!.close());
    await clock.advance(89);
    expect(closing.settled).toBe(false);
    await clock.advance(1);
    expect([closing.settled, set.settled, set.error]).toEqual([true, true, undefined]);
    expect(server.entries.get('key')).toContain('set');
  });

  test('after it loaders answer, uncached', async () => {
    const { cache, processes } = setUp();
    await processes[0]!.close();
    expect(await cache.getOrLoad('key', () => 1, '60s')).toBe(1);
    expect(await cache.getOrLoad('key', () => 2, '60s')).toBe(2);
  });

  test('completes the events, and may be called again', async () => {
    const { cache, processes } = setUp();
    let completed = 0;
    cache.events.subscribe({ complete: () => completed++ });
    await Promise.all([processes[0]!.close(), processes[0]!.close()]);
    await processes[0]!.close();
    expect(completed).toBe(1);
  });

  test('does not hang on a store that is away', async () => {
    const setting = setUp({ drainTimeout: '1s' });
    const { clock, cache, processes, store } = setting;
    const call = follow(cache.getOrLoad('key', () => clock.sleep(5_000), '60s'));
    const lock = await setting.locks.acquire('lock');
    store.isAway();
    const closing = follow(processes[0]!.close());
    await clock.advance(1_000 + 500 + 500);
    expect(closing.settled).toBe(true);
    expect(call.error).toBeInstanceOf(CacheClosedError);
    expect(await lock.release()).toBe(false);
    await clock.advance(5_000);
  });
});
