import { describe, expect, test } from '@jest/globals';
import { CacheWaitTimeoutError, StampedeCacheError } from '../../lib/core/errors.js';
import { crowd, expectAll, follow, slowLoader } from './loaders.js';
import { setUp } from './setting.js';

describe("waiting for another's load", () => {
  test("S6: 'throw': a follower whose wait is over gets a typed error with key and time; the load goes on", async () => {
    const { clock, processes, events } = setUp({ processes: 2 });
    const loader = slowLoader(clock, 3_000, (run) => run);
    const leader = follow(processes[1]!.cache.getOrLoad('key', loader, '60s'));
    await clock.advance(10);
    const follower = follow(processes[0]!.cache.getOrLoad('key', loader, { ttl: '60s', wait: '1s' }));
    await clock.advance(999);
    expect(follower.settled).toBe(false);
    await clock.advance(1);
    expect(follower.error).toBeInstanceOf(CacheWaitTimeoutError);
    expect(follower.error).toBeInstanceOf(StampedeCacheError);
    expect(follower.error).toMatchObject({ code: 'CACHE_WAIT_TIMEOUT', key: 'key', waited: 1_000 });
    expect(events.at(-1)).toEqual({ type: 'wait-timeout', key: 'key', waited: 1_000 });
    await clock.advance(2_000);
    expect(leader.value).toBe(1);
    expect(loader.runs).toBe(1);
  });

  test('each caller waits its own time from its own start, in the process that loads as in those that follow', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const loader = slowLoader(clock, 10_000, (run) => run);
    const call = (index: number, wait: number) => {
      const followed = follow(processes[index]!.cache.getOrLoad('key', loader, { ttl: '60s', wait }));
      return followed;
    };
    const leader = call(0, 100);
    await clock.advance(10);
    const short = [call(0, 1_000), call(1, 1_000)];
    await clock.advance(490);
    const late = [call(0, 1_000), call(1, 1_000)];
    await clock.advance(510);
    expect(short.map(({ error }) => (error as CacheWaitTimeoutError).waited)).toEqual([1_000, 1_000]);
    expect(late.map(({ settled }) => settled)).toEqual([false, false]);
    await clock.advance(490);
    expect(late.map(({ error }) => (error as CacheWaitTimeoutError).waited)).toEqual([1_000, 1_000]);
    await clock.advance(10_000);
    // Who loads waits for nobody.
    expect(leader.value).toBe(1);
    expect(loader.runs).toBe(1);
  });

  test('a wait does not begin anew when the load that is waited for does', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const loader = slowLoader(clock, 2_000, (run) => run);
    const call = (wait: number) => follow(processes[0]!.cache.getOrLoad('key', loader, { ttl: '60s', wait }));
    const first = call(30_000);
    await clock.advance(10);
    const second = call(30_000);
    const short = call(1_000);
    await clock.advance(500);
    await processes[1]!.cache.evict('key');
    await clock.advance(499);
    // By now the second loads, and the third waits for that.
    expect([loader.runs, short.settled]).toEqual([2, false]);
    await clock.advance(1);
    expect(short.error).toMatchObject({ code: 'CACHE_WAIT_TIMEOUT', waited: 1_000 });
    await clock.advance(2_000);
    expect([first.value, second.value]).toEqual([1, 2]);
  });

  test("S6: 'load': those whose wait is over share one load of their own a process, which is not stored", async () => {
    const { clock, processes } = setUp({ processes: 3 });
    const slow = slowLoader(clock, 10_000, () => 'slow');
    const own = slowLoader(clock, 200, () => 'own');
    void processes[0]?.cache.getOrLoad('key', slow, '60s');
    await clock.advance(10);
    const options = { ttl: '60s', wait: 1_000, onWaitTimeout: 'load' } as const;
    const calls = [1, 2].flatMap((index) =>
      crowd(20, () => processes[index]!.cache.getOrLoad('key', own, options)).map(follow),
    );
    await clock.advance(1_000);
    expect(own.runs).toBe(2);
    await clock.advance(200);
    expectAll(calls, 'own');
    expect(await processes[1]?.cache.has('key')).toBe(false);
    await clock.advance(9_000);
    expect(await processes[1]?.cache.get('key')).toBe('slow');
    expect([slow.runs, own.runs]).toEqual([1, 2]);
  });

  test("S6: 'load': callers who start after such a load began are not answered by it; they share the next", async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const own = slowLoader(clock, 500, (run) => `own ${run}`);
    void processes[0]?.cache.getOrLoad('key', () => clock.sleep(10_000), '60s');
    await clock.advance(10);
    const options = { ttl: '60s', wait: 100, onWaitTimeout: 'load' } as const;
    const call = () => follow(processes[1]!.cache.getOrLoad('key', own, options));
    const first = call();
    await clock.advance(110);
    const later = [call(), call()];
    await clock.advance(100);
    expect(own.runs).toBe(1);
    await clock.advance(390);
    expect(first.value).toBe('own 1');
    expect(later.map(({ settled }) => settled)).toEqual([false, false]);
    await clock.advance(500);
    expectAll(later, 'own 2');
    expect(own.most).toBe(1);
    await clock.advance(9_000);
  });

  test("S6: 'load': what comes first answers, the load that was waited for or the own one", async () => {
    const { clock, processes } = setUp({ processes: 2 });
    void processes[0]?.cache.getOrLoad('key', () => clock.sleep(1_000).then(() => 'awaited'), '60s');
    await clock.advance(10);
    const options = { ttl: '60s', wait: 500, onWaitTimeout: 'load' } as const;
    const call = follow(processes[1]!.cache.getOrLoad('key', () => clock.sleep(2_000).then(() => 'own'), options));
    await clock.advance(990);
    expect(call.value).toBe('awaited');
    await clock.advance(2_000);
    expect(await processes[1]?.cache.get('key')).toBe('awaited');
  });

  test("S6: 'load': the own load's error is the caller's, as it was thrown", async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const error = new Error('own');
    void processes[0]?.cache.getOrLoad('key', () => clock.sleep(1_000), '60s');
    await clock.advance(10);
    const options = { ttl: '60s', wait: 500, onWaitTimeout: 'load' } as const;
    const call = follow(processes[1]!.cache.getOrLoad('key', () => Promise.reject(error), options));
    await clock.advance(500);
    expect(call.error).toBe(error);
  });

  test('a wait below twice the lease is a warning at boot, unless the caller would load by itself', () => {
    const warnings: string[] = [];
    const logger = { log() {}, error() {}, warn: (message: string) => warnings.push(message) };
    setUp({ logger, defaults: { wait: '9999ms', onWaitTimeout: 'load' } });
    setUp({ logger, defaults: { wait: '10s' } });
    expect(warnings).toEqual([]);
    setUp({ logger, defaults: { wait: '9999ms' } });
    expect(warnings).toEqual([expect.stringContaining("'wait' (9999 ms) is below twice the 'lease' (5000 ms)")]);
  });
});
