import { describe, expect, test } from '@jest/globals';
import { LockContendedError, LockLostError, LockUnavailableError, StampedeCacheError } from '../../lib/core/errors.js';
import { follow } from './loaders.js';
import { setUp } from './setting.js';

describe('a lock', () => {
  test('is held by one at a time, in one process and in several', async () => {
    const { processes } = setUp({ processes: 2 });
    const [a, b] = [processes[0]!.locks, processes[1]!.locks];
    const lock = await a.acquire('key');
    expect(await a.tryAcquire('key')).toBe(undefined);
    expect(await b.tryAcquire('key')).toBe(undefined);
    expect(await b.tryAcquire('other')).toBeDefined();
    expect(await lock.release()).toBe(true);
    const next = await b.tryAcquire('key');
    expect(next?.token).not.toBe(lock.token);
  });

  test('has a fencing token that grows with every lock of its key', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const tokens: number[] = [];
    for (let i = 0; i < 6; i++) {
      const lock = await processes[i % 2]!.locks.acquire('key');
      tokens.push(lock.fencingToken);
      if (i === 3) await clock.advance(60_000);
      await lock.release();
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    expect(tokens.every(Number.isSafeInteger)).toBe(true);
  });

  test('is renewed until it is released', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const lock = await processes[0]!.locks.acquire('key', { lease: '3s' });
    await clock.advance(60_000);
    expect(lock.signal.aborted).toBe(false);
    expect(await processes[1]!.locks.tryAcquire('key')).toBe(undefined);
    expect(await lock.release()).toBe(true);
    const sent = processes[0]!.store.count('renew');
    await clock.advance(60_000);
    expect(processes[0]!.store.count('renew')).toBe(sent);
  });

  test('L1: releasing it after it expired does not throw; it says so, and an event warns', async () => {
    const setting = setUp();
    const { clock, locks, events } = setting;
    const lock = await locks.acquire('key', { renew: false });
    await clock.advance(5_000);
    expect(await lock.release()).toBe(false);
    expect(await lock.release()).toBe(false);
    expect(events.slice(1)).toEqual([{ type: 'lock-lost', key: 'key' }]);

    const taken = await locks.acquire('key');
    setting.loseLock('key', 'lock');
    expect(await taken.release()).toBe(false);
    expect(events.slice(3)).toEqual([{ type: 'lock-lost', key: 'key' }]);
  });

  test('L1: what the work comes to is never hidden by a lock that was lost', async () => {
    const setting = setUp();
    const { clock, locks } = setting;
    const work = (end: () => unknown) =>
      follow(locks.withLock('key', { renew: false }, () => clock.sleep(6_000).then(end)));
    const done = work(() => 'done');
    await clock.advance(6_000);
    expect(done.value).toBe('done');
    const error = new Error('failed');
    const failed = work(() => Promise.reject(error));
    await clock.advance(6_000);
    expect(failed.error).toBe(error);
  });

  test('L2: a renewal that failed is tried again, and the lock is kept', async () => {
    const { clock, locks, store } = setUp();
    const lock = await locks.acquire('key');
    store.fails('renew', 'rejects');
    await clock.advance(4_000);
    store.works();
    await clock.advance(10_000);
    expect(lock.signal.aborted).toBe(false);
    expect(await lock.release()).toBe(true);
  });

  test.each(['rejects', 'request lost', 'reply lost'] as const)(
    'L2: renewals that all fail (%s): at the end of the lease its signal aborts, by our own count',
    async (fault) => {
      const { clock, locks, store, events } = setUp();
      const lock = await locks.acquire('key');
      store.fails('renew', fault);
      await clock.advance(4_999);
      expect(lock.signal.aborted).toBe(false);
      await clock.advance(1);
      expect(lock.signal.aborted).toBe(true);
      expect(lock.signal.reason).toBeInstanceOf(LockLostError);
      await expect(lock.extend()).rejects.toBeInstanceOf(LockLostError);
      expect(events.filter(({ type }) => type === 'lock-lost')).toHaveLength(1);
      store.works();
      await lock.release();
    },
  );

  test('is lost at once when a renewal finds that another has it, or nobody', async () => {
    const setting = setUp({ processes: 2 });
    const { clock, processes } = setting;
    for (const other of [true, false]) {
      const lock = await processes[0]!.locks.acquire('key');
      setting.loseLock('key', 'lock');
      const theirs = other && (await processes[1]!.locks.acquire('key'));
      await clock.advance(1_667);
      expect(lock.signal.reason).toBeInstanceOf(LockLostError);
      expect(await lock.release()).toBe(false);
      if (theirs) expect(await theirs.release()).toBe(true);
    }
  });

  test('L3: contention, loss and outage are three classes', async () => {
    const setting = setUp({ processes: 2 });
    const { clock, processes, store } = setting;
    const [a, b] = [processes[0]!.locks, processes[1]!.locks];
    const lock = await b.acquire('key');
    const contended = follow(a.acquire('key', { wait: '1s' }));
    await clock.advance(1_000);
    expect(contended.error).toBeInstanceOf(LockContendedError);
    expect(contended.error).toMatchObject({ code: 'LOCK_CONTENDED', key: 'key', waited: 1_000 });

    setting.loseLock('key', 'lock');
    const lost = await lock.extend().catch((error) => error);
    expect(lost).toBeInstanceOf(LockLostError);
    expect(lost).toMatchObject({ code: 'LOCK_LOST', key: 'key' });

    store.fails('lead', 'request lost');
    const unavailable = [follow(a.acquire('key')), follow(a.tryAcquire('other'))];
    await clock.advance(500);
    for (const { error } of unavailable) {
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error).toMatchObject({
        code: 'LOCK_UNAVAILABLE',
        cause: expect.objectContaining({ code: 'COMMAND_TIMEOUT' }),
      });
    }
    for (const error of [contended.error, lost, unavailable[0]?.error])
      expect(error).toBeInstanceOf(StampedeCacheError);
  });

  test('L3: an outage never lets anything run, and what may have been taken is released', async () => {
    const setting = setUp();
    const { clock, locks, store } = setting;
    let ran = false;
    const run = () => {
      ran = true;
    };
    for (const fault of ['rejects', 'reply lost', { runsAfter: 700 }, { repliesAfter: 700 }] as const) {
      store.fails('lead', fault);
      const working = follow(locks.withLock('key', {}, run));
      await clock.advance(500);
      expect(working.error).toBeInstanceOf(LockUnavailableError);
      await clock.advance(200);
      expect(setting.lockOf('key', 'lock')).toBe(undefined);
    }
    expect(ran).toBe(false);
  });

  test('extend renews for longer or shorter, and goes on renewing that', async () => {
    const setting = setUp();
    const { clock, server, locks } = setting;
    const lock = await locks.acquire('key', { lease: '9s' });
    await lock.extend(1_000);
    expect(server.locks.timeLeft('lock key')).toBe(1_000);
    await clock.advance(5_000);
    expect(lock.signal.aborted).toBe(false);
    await lock.extend(60_000);
    expect(server.locks.timeLeft('lock key')).toBe(60_000);
    await clock.advance(120_000);
    expect(await lock.release()).toBe(true);
    await expect(lock.extend()).rejects.toBeInstanceOf(LockLostError);
  });

  test('extend without a reply: LockUnavailableError, and the lock is held until its lease ends', async () => {
    const { clock, locks, store } = setUp();
    const lock = await locks.acquire('key', { renew: false });
    store.fails('renew', 'request lost');
    const extending = follow(lock.extend());
    await clock.advance(500);
    expect(extending.error).toBeInstanceOf(LockUnavailableError);
    expect(lock.signal.aborted).toBe(false);
    await clock.advance(4_500);
    expect(lock.signal.aborted).toBe(true);
  });

  test('extend whose reply comes when the lease is over by our own count: it is lost, whatever the reply says', async () => {
    const setting = setUp();
    const { clock, locks, store } = setting;
    const lock = await locks.acquire('key', { renew: false });
    await clock.advance(4_900);
    store.fails('renew', { repliesAfter: 200 });
    const extending = follow(lock.extend());
    await clock.advance(200);
    expect(lock.signal.aborted).toBe(true);
    expect(extending.error).toBeInstanceOf(LockLostError);
    await lock.release();
    expect(setting.lockOf('key', 'lock')).toBe(undefined);
  });

  test('await using releases it', async () => {
    const setting = setUp();
    {
      await using lock = await setting.locks.acquire('key');
      expect(lock.key).toBe('key');
      expect(setting.lockOf('key', 'lock')?.token).toBe(lock.token);
    }
    expect(setting.lockOf('key', 'lock')).toBe(undefined);
  });
});
