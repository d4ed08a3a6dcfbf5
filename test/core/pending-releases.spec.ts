import { describe, expect, test } from '@jest/globals';
import { StoreReplyError } from '../../lib/core/errors.js';
import { follow } from './loaders.js';
import { type Setting, setUp } from './setting.js';

describe('a release that the store did not acknowledge', () => {
  test.each(['rejects', 'request lost'] as const)(
    'of a load (%s) is made up for as soon as the store answers, and not left to the lease',
    async (fault) => {
      const setting = setUp({ processes: 2 });
      const { clock } = setting;
      const [leader, other] = [setting.process(0), setting.process(1)];
      leader.store.fails('end', fault);
      const call = follow(leader.cache.getOrLoad('key', () => 'old', '60s'));
      await clock.advance(2_000);
      expect(call.value).toBe('old');
      expect(setting.lockOf('key')).toBeDefined();
      leader.store.works();
      await clock.advance(800);
      expect(setting.lockOf('key')).toBeUndefined();
      // What it should have stored is not stored this late.
      expect(await other.cache.get('key')).toBeUndefined();
    },
  );

  test('wakes the followers, who would wait for the end of the lease otherwise', async () => {
    const setting = setUp({ processes: 2 });
    const { clock } = setting;
    const [leader, follower] = [setting.process(0), setting.process(1)];
    void leader.cache.getOrLoad('key', () => clock.sleep(100).then(() => 'old'), '60s');
    await clock.advance(10);
    const call = follow(follower.cache.getOrLoad('key', () => 'new', '60s'));
    leader.store.fails('end', 'request lost');
    await clock.advance(600);
    leader.store.works();
    await clock.advance(600);
    expect(call.value).toBe('new');
  });

  test('of a lock of the lock service is made up for as well', async () => {
    const setting = setUp();
    const { clock, store, locks } = setting;
    const lock = await locks.acquire('key');
    store.fails('end', 'request lost');
    const released = follow(lock.release());
    await clock.advance(500);
    expect(released.value).toBe(false);
    store.works();
    await clock.advance(500);
    expect(setting.lockOf('key', 'lock')).toBeUndefined();
  });

  test('is tried again even if the token has no lock yet: a frozen server may still take it', async () => {
    const setting = setUp();
    const { clock, store, locks, server } = setting;
    store.fails('lead', 'request lost');
    const refused = follow(locks.tryAcquire('key'));
    await clock.advance(500);
    expect(refused.error).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    // Its release has been refused by now. What was on its way all the time arrives, and nobody will ever hear of that.
    await clock.advance(100);
    const token = `${store.process}#1`;
    server.locks.set('lock key', { token, followers: new Set(), fencingToken: 1 }, 60_000);
    await clock.advance(500);
    expect(setting.lockOf('key', 'lock')).toBeUndefined();
    const sent = store.count('end');
    await clock.advance(5_000);
    expect(store.count('end')).toBe(sent);
  });

  test('is given up when the store has said often enough that there is no such lock, and when the cache closes', async () => {
    const { clock, cache, store } = setUp();
    store.fails('lead', 'request lost');
    const call = follow(cache.getOrLoad('key', () => 1, '60s'));
    await clock.advance(600);
    expect(call.value).toBe(1);
    await clock.advance(5_000);
    expect(store.count('end')).toBe(4);
    store.fails('end', 'request lost');
    void cache.getOrLoad('other', () => 1, '60s');
    await clock.advance(3_000);
  });

  const whatHoldsALock: [string, (setting: Setting) => unknown][] = [
    ['a load', ({ cache }) => cache.getOrLoad('key', () => 1, '60s')],
    ['a set', ({ cache }) => cache.set('key', 1, '60s').catch(() => {})],
    ['the lock service', ({ locks }) => locks.acquire('key').then((lock) => lock.release())],
  ];

  test.each(whatHoldsALock)(
    '(of %s) is given up once its lease must have ended, if it is answered with errors',
    async (_, hold) => {
      const setting = setUp({ defaults: { lease: '3s' } });
      const { clock, store } = setting;
      let errors = 0;
      store.end = () => {
        errors += 1;
        return Promise.reject(new StoreReplyError(new Error('NOPERM')));
      };
      await hold(setting);
      await clock.advance(2_900);
      expect(errors).toBeGreaterThan(10);
      await clock.advance(500);
      const sent = errors;
      await clock.advance(10_000);
      expect(errors).toBe(sent);
    },
  );

  test('is not given up as long as there is no answer: a frozen server may still take the lock', async () => {
    const setting = setUp({ defaults: { lease: '3s' } });
    const { clock, store, locks, server } = setting;
    store.fails('lead', 'request lost');
    store.fails('end', 'rejects');
    const refused = follow(locks.tryAcquire('key'));
    await clock.advance(20_000);
    expect(refused.error).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    server.locks.set('lock key', { token: `${store.process}#1`, followers: new Set(), fencingToken: 1 }, 60_000);
    store.works('end');
    await clock.advance(1_000);
    expect(setting.lockOf('key', 'lock')).toBeUndefined();
  });
});
