import { describe, expect, test } from '@jest/globals';
import { expectAll, follow, slowLoader } from './loaders.js';
import { setUp } from './setting.js';

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
    // At random from 20 to 80, here always half-way; growing by half each time, up to 250.
    expect(gaps.slice(0, 6)).toEqual([50, 75, 113, 168, 250, 250].map((gap) => expect.closeTo(gap, -1)));
    expect(Math.max(...gaps)).toBe(250);
  });

  test('a wake-up that got lost costs it a look of at most a quarter of a second', async () => {
    const { clock, processes } = setUp({ processes: 2, random: () => 0.999 });
    const [leader, follower] = [processes[0]!, processes[1]!];
    follower.store.losesWakeUps = true;
    void leader.cache.getOrLoad('key', () => clock.sleep(501).then(() => 1), '60s');
    await clock.advance(0);
    const call = follow(follower.cache.getOrLoad('key', () => 2, '60s'));
    await clock.advance(750);
    expect(call.value).toBe(1);
    expect(follower.store.sent.map(({ command }) => command)).toEqual([
      ...['read', 'lead'],
      ...['leaseLeft', 'leaseLeft', 'leaseLeft', 'lead'],
    ]);
  });

  test('a lost wake-up, and a lock that others have taken since: it asks again in time for the outcome', async () => {
    const { clock, processes } = setUp({ processes: 3 });
    const [leader, follower, next] = [processes[0]!, processes[1]!, processes[2]!];
    follower.store.losesWakeUps = true;
    void leader.cache.getOrLoad('key', () => clock.sleep(100).then(() => 1), { ttl: '60s', cacheIf: () => false });
    await clock.advance(10);
    const call = follow(follower.cache.getOrLoad('key', () => 2, '60s'));
    await clock.advance(95);
    void next.cache.getOrLoad('key', () => clock.sleep(4_000).then(() => 3), '60s');
    await clock.advance(1_800);
    expect(call.value).toBe(1);
  });

  test('a subscription that is lost while it looks at the lock is not forgotten: it asks anew, and polls from then on', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const [leader, follower] = [processes[0]!, processes[1]!];
    void leader.cache.getOrLoad('key', () => clock.sleep(3_000).then(() => 1), '60s');
    await clock.advance(10);
    const call = follow(follower.cache.getOrLoad('key', () => 2, '60s'));
    follower.store.fails('leaseLeft', { repliesAfter: 50 });
    await clock.advance(235);
    expect(follower.store.sent.at(-1)?.command).toBe('leaseLeft');
    // The wake-up comes while the reply is on its way.
    follower.store.deaf = true;
    follower.store.wake(undefined);
    await clock.advance(60);
    expect(follower.store.sent.at(-1)?.command).toBe('lead');
    const asked = follower.store.count('lead');
    await clock.advance(500);
    expect(follower.store.count('lead')).toBeGreaterThan(asked + 2);
    await clock.advance(3_000);
    expect(call.value).toBe(1);
  });

  test('nor is one that is lost while the reply that says whom to wait for is on its way', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const [leader, follower] = [processes[0]!, processes[1]!];
    void leader.cache.getOrLoad('key', () => clock.sleep(3_000).then(() => 1), '60s');
    await clock.advance(10);
    follower.store.fails('lead', { repliesAfter: 50 });
    const call = follow(follower.cache.getOrLoad('key', () => 2, '60s'));
    await clock.advance(20);
    expect(follower.store.count('lead')).toBe(1);
    // It was registered as one that can be woken.
    follower.store.deaf = true;
    follower.store.wake(undefined);
    await clock.advance(130);
    expect(follower.store.count('lead')).toBeGreaterThan(1);
    await clock.advance(500);
    expect(follower.store.count('lead')).toBeGreaterThan(3);
    await clock.advance(3_000);
    expect(call.value).toBe(1);
  });

  test('the longer the load, the fewer commands: looks, and a lead now and then', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const [leader, follower] = [processes[0]!, processes[1]!];
    void leader.cache.getOrLoad('key', () => clock.sleep(9_000).then(() => 1), '60s');
    await clock.advance(10);
    void follower.cache.getOrLoad('key', () => 2, '60s');
    await clock.advance(9_000);
    expect(follower.store.count('lead')).toBeLessThan(8);
    expect(follower.store.count('leaseLeft')).toBeLessThan(45);
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
