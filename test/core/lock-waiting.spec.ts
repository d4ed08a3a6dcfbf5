import { describe, expect, test } from '@jest/globals';
import { LockContendedError, LockUnavailableError } from '../../lib/core/errors.js';
import { Patience } from '../../lib/core/patience.js';
import { follow } from './loaders.js';
import { setUp } from './setting.js';

describe('waiting for a lock', () => {
  test('ends at the moment in which the other releases it', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const lock = await processes[0]!.locks.acquire('key');
    const waiting = follow(processes[1]!.locks.acquire('key'));
    await clock.advance(137);
    expect(waiting.settled).toBe(false);
    await lock.release();
    await clock.advance(0);
    expect(waiting.value).toBeDefined();
  });

  test('in one process goes in the order in which they came', async () => {
    const { clock, locks } = setUp();
    const order: number[] = [];
    const working = [1, 2, 3, 4].map((n) =>
      locks.withLock('key', {}, async () => {
        order.push(n);
        await clock.sleep(10);
        order.push(n);
      }),
    );
    await clock.advance(100);
    await Promise.all(working);
    expect(order).toEqual([1, 1, 2, 2, 3, 3, 4, 4]);
  });

  test('a holder that was killed: its lease ends, and the next has it within 5 ms of that', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    await processes[0]!.locks.acquire('key');
    const waiting = follow(processes[1]!.locks.acquire('key'));
    await clock.advance(100);
    processes[0]!.store.crashed = true;
    await clock.advance(4_899);
    expect(waiting.settled).toBe(false);
    await clock.advance(6);
    expect(waiting.value).toBeDefined();
  });

  test('L4: the lease counts from the attempt that won, not from the start of the waiting', async () => {
    const setting = setUp({ processes: 2 });
    const { clock, processes, server } = setting;
    const first = await processes[0]!.locks.acquire('key');
    const waiting = follow(processes[1]!.locks.acquire('key', { lease: '2s', renew: false }));
    await clock.advance(20_000);
    await first.release();
    await clock.advance(0);
    const lock = waiting.value!;
    expect(server.locks.timeLeft('lock key')).toBe(2_000);
    expect(lock.expiresAt - Date.now()).toBeGreaterThan(1_900);
    await clock.advance(1_999);
    expect(lock.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(lock.signal.aborted).toBe(true);
  });

  test('a lock whose reply comes when less than a third of its lease is left is released, and asked for again', async () => {
    const { clock, locks, store } = setUp();
    store.fails('lead', { repliesAfter: 400 });
    const acquiring = follow(locks.acquire('key', { lease: 500 }));
    await clock.advance(400);
    expect(acquiring.settled).toBe(false);
    store.works();
    await clock.advance(400);
    // The second was asked for before the store got quick again.
    await clock.advance(0);
    expect(acquiring.value).toBeDefined();
  });

  test('200 waiters in one process: the store is asked for each turn, not for each waiter', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const held = await processes[1]!.locks.acquire('key');
    const { locks, store } = processes[0]!;
    const waiting = Array.from({ length: 200 }, () => follow(locks.acquire('key', { wait: '10s' })));
    await clock.advance(10_000);
    expect(waiting.filter(({ error }) => error instanceof LockContendedError)).toHaveLength(200);
    // The one whose turn it is polls each 375 ms, here.
    expect(store.count('lead')).toBeLessThanOrEqual(30);
    expect(await held.release()).toBe(true);
  });

  test('wait: 0 tries once; in a process that has the lock, or waits for it, the store is not even asked', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const { locks, store } = processes[0]!;
    await processes[1]!.locks.acquire('key');
    const once = follow(locks.acquire('key', { wait: 0 }));
    await clock.advance(0);
    expect(once.error).toMatchObject({ code: 'LOCK_CONTENDED', waited: 0 });
    expect(store.count('lead')).toBe(1);
    const waiting = follow(locks.acquire('key', { wait: '1s' }));
    await clock.advance(0);
    expect(await locks.tryAcquire('key')).toBe(undefined);
    expect(store.count('lead')).toBe(2);
    await clock.advance(1_000);
    expect(waiting.settled).toBe(true);
  });

  test('who only tries is not told of another that has it when the store is away', async () => {
    const { clock, locks, store } = setUp({ commandTimeout: 500 });
    store.isAway();
    const tries = [1, 2, 3].map(() => follow(locks.tryAcquire('key')));
    await clock.advance(500);
    expect(tries.map(({ error }) => error)).toEqual(Array(3).fill(expect.any(LockUnavailableError)));
    store.works();
    const together = await Promise.all([1, 2, 3].map(() => locks.tryAcquire('key')));
    expect(together.map((lock) => lock !== undefined)).toEqual([true, false, false]);
  });

  test('who only tries, and waits for the reply that another waits for, heeds its signal meanwhile', async () => {
    const { clock, locks, store } = setUp();
    store.fails('lead', { repliesAfter: 300 });
    void locks.acquire('key');
    await clock.advance(1);
    const controller = new AbortController();
    const trying = follow(locks.acquire('key', { wait: 0, signal: controller.signal }));
    await clock.advance(100);
    controller.abort(new Error('gave up'));
    await clock.advance(0);
    expect(trying.error).toEqual(new Error('gave up'));
    await clock.advance(300);
  });

  test('is over when its timer says so, even if that is early by a part of a millisecond', async () => {
    let [now, fire] = [0, () => {}];
    const clock = {
      now: () => now,
      after(_delay: number, run: () => void) {
        fire = run;
        return { clear() {} };
      },
    };
    const patience = new Patience(clock, 20, undefined);
    const { ended } = patience;
    now = 19.7;
    expect(patience.isOver).toBe(false);
    fire();
    await ended;
    expect(patience.isOver).toBe(true);
  });

  test("ends with the signal's reason: before it began, in the line, and in the store's line", async () => {
    const setting = setUp({ processes: 2 });
    const { clock, processes } = setting;
    const { locks, store } = processes[0]!;
    await expect(locks.acquire('key', { signal: AbortSignal.abort('before') })).rejects.toBe('before');
    expect(store.sent).toEqual([]);
    await processes[1]!.locks.acquire('key');
    const controller = new AbortController();
    const { signal } = controller;
    const waiting = [1, 2].map(() => follow(locks.acquire('key', { signal })));
    await clock.advance(10);
    controller.abort('enough');
    await clock.advance(0);
    expect(waiting.map(({ error }) => error)).toEqual(['enough', 'enough']);
    // The line is free again.
    const next = follow(locks.acquire('key', { wait: '1s' }));
    await clock.advance(1_000);
    expect(next.error).toBeInstanceOf(LockContendedError);
  });

  test('a signal that aborts while the command that took the lock is on its way: it is given back', async () => {
    const setting = setUp();
    const { clock, locks, store } = setting;
    store.fails('lead', { repliesAfter: 100 });
    const controller = new AbortController();
    const acquiring = follow(locks.acquire('key', { signal: controller.signal }));
    await clock.advance(50);
    controller.abort('enough');
    await clock.advance(50);
    expect(acquiring.error).toBe('enough');
    expect(setting.lockOf('key', 'lock')).toBe(undefined);
  });

  test('a signal that aborts after the lock was had does nothing to it', async () => {
    const { locks } = setUp();
    const controller = new AbortController();
    const lock = await locks.acquire('key', { signal: controller.signal });
    controller.abort();
    expect(lock.signal.aborted).toBe(false);
    expect(await lock.release()).toBe(true);
  });
});
