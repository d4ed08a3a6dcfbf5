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

describe('how a follower learns that the load has ended', () => {
  test('without a subscription it polls, the less often the longer it waits', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const [leader, follower] = [processes[0]!, processes[1]!];
    follower.store.deaf = true;
    void leader.cache.getOrLoad('key', () => clock.sleep(3_000).then(() => 1), '60s');
    await clock.advance(10);
    const call = follow(follower.cache.getOrLoad('key', () => 2, '60s'));
    const polls: number[] = [];
    for (let ms = 0; ms < 3_500 && !call.settled; ms++) {
      const before = follower.store.count('lead');
      await clock.advance(1);
      if (follower.store.count('lead') > before) polls.push(ms);
    }
    expect(call.value).toBe(1);
    const gaps = polls.slice(1).map((at, i) => at - (polls[i] ?? 0));
    // At random from 20 to 80, here always half-way; growing by half each time, up to 500.
    expect(gaps.slice(0, 6)).toEqual([50, 75, 113, 168, 254, 379].map((gap) => expect.closeTo(gap, -1)));
    expect(Math.max(...gaps)).toBe(500);
  });

  test('a wake-up that got lost costs it a poll of at most half a second', async () => {
    const { clock, processes } = setUp({ processes: 2, random: () => 0.999 });
    const [leader, follower] = [processes[0]!, processes[1]!];
    follower.store.losesWakeUps = true;
    void leader.cache.getOrLoad('key', () => clock.sleep(501).then(() => 1), '60s');
    await clock.advance(0);
    const call = follow(follower.cache.getOrLoad('key', () => 2, '60s'));
    await clock.advance(1_000);
    expect(call.value).toBe(1);
    expect(follower.store.count('lead')).toBe(3);
  });

  test('R7: a doubled wake-up, or one for a token that nobody waits for, harms nothing', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const [leader, follower] = [processes[0]!, processes[1]!];
    const loader = slowLoader(clock, 100, (run) => run);
    void leader.cache.getOrLoad('key', loader, '60s');
    await clock.advance(10);
    const call = follow(follower.cache.getOrLoad('key', loader, '60s'));
    await clock.advance(10);
    const token = `${leader.store.process}#1`;
    for (const woken of [token, token, 'nobody#7']) follower.store.wake(woken);
    await clock.advance(10);
    // It has looked again, and waits again.
    expect(call.settled).toBe(false);
    await clock.advance(70);
    follower.store.wake(token);
    expect(call.value).toBe(1);
    expect(loader.runs).toBe(1);
  });

  test('R7: a restarted store has lost the lock, the entry and whom to wake: polling answers the followers', async () => {
    const setting = setUp({ processes: 2 });
    const { clock } = setting;
    const [leader, follower] = [setting.process(0), setting.process(1)];
    const loader = slowLoader(clock, 1_000, (run) => run);
    const first = follow(leader.cache.getOrLoad('key', loader, '60s'));
    await clock.advance(10);
    const call = follow(follower.cache.getOrLoad('key', loader, '60s'));
    await clock.advance(10);
    setting.loseLock('key');
    await clock.advance(1_500);
    expect([first.value, call.value]).toEqual([1, 2]);
  });

  test('R7: after a new subscription every flight looks again: followers lead, the leader checks its lease', async () => {
    const setting = setUp({ processes: 2 });
    const { clock } = setting;
    const [leader, follower] = [setting.process(0), setting.process(1)];
    void leader.cache.getOrLoad('key', () => clock.sleep(1_000), '60s');
    await clock.advance(10);
    void follower.cache.getOrLoad('key', () => 2, '60s');
    await clock.advance(10);
    for (const { store } of setting.processes) {
      store.sent.length = 0;
      store.wake(undefined);
    }
    await clock.advance(1);
    expect(leader.store.sent).toEqual([{ command: 'renew', key: 'key' }]);
    expect(follower.store.sent).toEqual([{ command: 'lead', key: 'key' }]);
  });

  test('a wake-up that is here before the reply that says whom to wait for is not lost', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const [leader, follower] = [processes[0]!, processes[1]!];
    void leader.cache.getOrLoad('key', () => clock.sleep(50).then(() => 1), '60s');
    await clock.advance(10);
    follower.store.fails('lead', { repliesAfter: 100 });
    const call = follow(follower.cache.getOrLoad('key', () => 2, '60s'));
    await clock.advance(100);
    // The load ended at 50; the reply came at 110 and is of no use any more.
    expect(call.value).toBe(1);
    expect(follower.store.count('lead')).toBe(1);
  });

  test('the first of a process waits for all its others: one registration, however many callers', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const [leader, follower] = [processes[0]!, processes[1]!];
    void leader.cache.getOrLoad('key', () => clock.sleep(200).then(() => 1), '60s');
    await clock.advance(10);
    const calls = [];
    for (let i = 0; i < 100; i++) {
      calls.push(follow(follower.cache.getOrLoad('key', () => 2, '60s')));
      await clock.advance(1);
    }
    await clock.advance(90);
    expectAll(calls, 1);
    expect(follower.store.sent.map(({ command }) => command)).toEqual(['read', 'lead', 'read']);
  });
});
