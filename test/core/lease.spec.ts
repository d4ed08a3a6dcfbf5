import { describe, expect, test } from '@jest/globals';
import { crowd, expectAll, follow, slowLoader } from './loaders.js';
import { setUp } from './setting.js';

describe('the lease of a load', () => {
  test('S4: a leader is killed with 50 callers waiting elsewhere: one new leader within the lease, and all get its value', async () => {
    const setting = setUp({ processes: 3 });
    const { clock } = setting;
    const [leader, ...others] = setting.processes;
    const loader = slowLoader(clock, 300, (run) => run);
    void leader?.cache.getOrLoad('key', loader, '60s');
    await clock.advance(100);
    const calls = others.flatMap(({ cache }) => crowd(25, () => cache.getOrLoad('key', loader, '60s')).map(follow));
    await clock.advance(100);
    if (leader) leader.store.crashed = true;
    // Its last lease was taken at 0 and lasts 5 s; followers look again within 5 ms of its end.
    await clock.advance(4_800 + 5);
    expect(loader.runs).toBe(2);
    await clock.advance(300);
    expectAll(calls, 2);
    expect(await others[1]?.cache.get('key')).toBe(2);
    expect(loader.runs).toBe(2);
  });

  test('S5: a loader that takes three times the lease runs once, since the lease is renewed', async () => {
    const { clock, processes, sent } = setUp({ processes: 10 });
    const loader = slowLoader(clock, 15_000, (run) => run);
    const calls = processes.flatMap(({ cache }) => crowd(20, () => cache.getOrLoad('key', loader, '60s')).map(follow));
    await clock.advance(15_000);
    expectAll(calls, 1);
    expect(loader.runs).toBe(1);
    // Every third of the lease, which is 5 s, by the leader alone.
    expect(sent('renew')).toBe(9);
  });

  test('S5: renewal refused, lease over: another loads, the late write is refused, and the newer value stays', async () => {
    const setting = setUp({ processes: 2 });
    const { clock } = setting;
    const [slow, quick] = [setting.process(0), setting.process(1)];
    slow.store.fails('renew', 'rejects');
    const old = follow(slow.cache.getOrLoad('key', () => clock.sleep(8_000).then(() => 'old'), '60s'));
    await clock.advance(5_001);
    expect(await quick.cache.getOrLoad('key', () => 'new', '60s')).toBe('new');
    await clock.advance(3_000);
    // Its caller came before the lease was lost, and nothing was evicted: the value is its answer.
    expect(old.value).toBe('old');
    expect(await slow.cache.get('key')).toBe('new');
    expect(slow.events).toContainEqual({ type: 'not-stored', key: 'key', reason: 'refused' });
  });

  test('S5: a renewal that had no reply is tried again, and the lease holds', async () => {
    const setting = setUp({ processes: 2 });
    const { clock, store } = setting;
    const loader = slowLoader(clock, 12_000, (run) => run);
    const calls = setting.processes.map(({ cache }) => follow(cache.getOrLoad('key', loader, '60s')));
    store.fails('renew', 'request lost');
    await clock.advance(4_000);
    store.works();
    await clock.advance(8_000);
    expectAll(calls, 1);
    expect(loader.runs).toBe(1);
    expect(setting.locksLeft).toEqual([]);
  });

  test('an unanswered renewal never aborts a load', async () => {
    const { clock, cache, store } = setUp();
    const loader = slowLoader(clock, 20_000, (run) => run);
    const call = follow(cache.getOrLoad('key', loader, '60s'));
    await clock.advance(100);
    store.fails('renew', 'request lost');
    await clock.advance(19_900);
    expect(call.value).toBe(1);
    expect(loader.signals[0]?.aborted).toBe(false);
  });

  test('R6: the lock is deleted and another takes it: the renewal does not take it back, and the loader is aborted', async () => {
    const setting = setUp({ processes: 2 });
    const { clock } = setting;
    const [first, second] = [setting.process(0), setting.process(1)];
    const loader = slowLoader(clock, 4_000, (run) => run);
    const call = follow(first.cache.getOrLoad('key', loader, '60s'));
    await clock.advance(100);
    setting.loseLock('key');
    const other = follow(second.cache.getOrLoad('key', loader, '60s'));
    await clock.advance(100);
    const token = setting.lockOf('key')?.token;
    await clock.advance(1_600);
    // The renewal was due meanwhile.
    expect(first.events).toContainEqual({ type: 'lease-lost', key: 'key', holder: 'other' });
    expect(loader.signals[0]?.aborted).toBe(true);
    expect(setting.lockOf('key')?.token).toBe(token);
    // No abort of ours reaches a caller: it waits for the new leader, and gets what that loads.
    expect(call.settled).toBe(false);
    await clock.advance(3_000);
    expect(call.value).toBe(2);
    expect(other.value).toBe(2);
    expect(loader.runs).toBe(2);
    expect(await first.cache.get('key')).toBe(2);
  });

  test('R6: the lock is deleted and nobody takes it: the load goes on, its value is not stored, later callers lead anew', async () => {
    const setting = setUp();
    const { clock, cache, events } = setting;
    const loader = slowLoader(clock, 4_000, (run) => run);
    const call = follow(cache.getOrLoad('key', loader, '60s'));
    await clock.advance(100);
    setting.loseLock('key');
    await clock.advance(1_700);
    expect(events).toContainEqual({ type: 'lease-lost', key: 'key', holder: 'gone' });
    expect(loader.signals[0]?.aborted).toBe(false);
    const later = follow(cache.getOrLoad('key', loader, '60s'));
    await clock.advance(3_000);
    expect(call.value).toBe(1);
    expect(await cache.get('key')).toBe(undefined);
    await clock.advance(2_000);
    expect(later.value).toBe(2);
    expect(await cache.get('key')).toBe(2);
  });

  test('a lock whose reply finds less than a third of its lease left is released, not used', async () => {
    const { clock, cache, store, events } = setUp();
    store.fails('lead', { repliesAfter: 400 });
    const loader = slowLoader(clock, 10, (run) => run);
    const call = follow(cache.getOrLoad('key', loader, { ttl: '60s', lease: 500 }));
    await clock.advance(400);
    store.works();
    expect(store.sent.map(({ command }) => command)).toEqual(['read', 'lead', 'end', 'lead']);
    expect(loader.runs).toBe(0);
    await clock.advance(500);
    expect(call.value).toBe(1);
    expect(events.map(({ type }) => type)).toEqual(['miss', 'load', 'not-stored']);
  });
});
