import { describe, expect, test } from '@jest/globals';
import { LockUnavailableError } from '../../lib/core/errors.js';
import { settle } from '../support/clock.js';
import { follow } from './loaders.js';
import { setUp } from './setting.js';

describe('close and the lock service', () => {
  test('releases the locks that are held', async () => {
    const setting = setUp({ processes: 2 });
    const { processes } = setting;
    await setting.locks.acquire('key');
    await processes[0]!.close();
    expect(await processes[1]!.locks.tryAcquire('key')).toBeDefined();
  });

  test('ends the waiting for a lock at once', async () => {
    const setting = setUp({ processes: 2 });
    const { clock, processes, locks } = setting;
    await processes[1]!.locks.acquire('key');
    const waiting = [1, 2, 3].map(() => follow(locks.acquire('key')));
    await clock.advance(10);
    await processes[0]!.close();
    await settle();
    for (const { error } of waiting) expect(error).toBeInstanceOf(LockUnavailableError);
  });

  test.each(Array.from({ length: 10 }, (_, ticks) => ticks))(
    'a lock that was asked for %p ticks before it is not left behind',
    async (ticks) => {
      const setting = setUp();
      const { processes, locks } = setting;
      const acquiring = follow(locks.acquire('key'));
      for (let tick = 0; tick < ticks; tick++) await undefined;
      await processes[0]!.close();
      await settle();
      expect(setting.lockOf('key', 'lock')).toBe(undefined);
      if (acquiring.value) expect(await acquiring.value.release()).toBe(true);
      else expect(acquiring.error).toBeInstanceOf(LockUnavailableError);
    },
  );

  test.each(Array.from({ length: 40 }, (_, ticks) => ticks))(
    'one that was tried for %p ticks after a release began is not left behind',
    async (ticks) => {
      const setting = setUp();
      const { locks } = setting;
      const lock = await locks.acquire('key');
      void lock.release();
      for (let tick = 0; tick < ticks; tick++) await undefined;
      const trying = locks.tryAcquire('key').catch(() => undefined);
      await locks.close();
      await settle();
      expect(setting.lockOf('key', 'lock')).toBe(undefined);
      expect((await trying)?.signal.aborted ?? true).toBe(true);
    },
  );

  test('after it no lock can be had', async () => {
    const { processes, locks } = setUp();
    await processes[0]!.close();
    await expect(locks.acquire('key')).rejects.toBeInstanceOf(LockUnavailableError);
    await expect(locks.tryAcquire('key')).rejects.toBeInstanceOf(LockUnavailableError);
  });
});
