import { describe, expect, test } from '@jest/globals';
import { CircuitBreaker } from '../../lib/core/circuit-breaker.js';
import { CircuitOpenError, StoreReplyError } from '../../lib/core/errors.js';
import { settle, TestClock } from '../support/clock.js';
import { follow } from './loaders.js';
import { setUp } from './setting.js';

/** A command whose reply the test gives. */
function command(breaker: CircuitBreaker) {
  let resolve: () => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<void>((...settling) => {
    [resolve, reject] = settling;
  });
  let sent = false;
  const followed = follow(
    breaker.run(() => {
      sent = true;
      return promise;
    }),
  );
  return {
    sent,
    followed,
    succeeds: () => {
      resolve();
      return settle();
    },
    fails: (error: unknown = new Error('away')) => {
      reject(error);
      return settle();
    },
  };
}

async function opened() {
  const clock = new TestClock();
  const breaker = new CircuitBreaker(clock, 3, 500);
  for (let i = 0; i < 3; i++) await command(breaker).fails();
  return { clock, breaker };
}

describe('the circuit breaker', () => {
  test('opens after three failures in a row', async () => {
    const { breaker } = await opened();
    const refused = command(breaker);
    await settle();
    expect([refused.sent, refused.followed.error]).toEqual([false, expect.any(CircuitOpenError)]);
  });

  test('a success in between, or an answer that is an error, keeps it closed', async () => {
    const breaker = new CircuitBreaker(new TestClock(), 3, 500);
    for (let i = 0; i < 5; i++) {
      for (let j = 0; j < 2; j++) await command(breaker).fails();
      if (i % 2 === 0) await command(breaker).succeeds();
      else await command(breaker).fails(new StoreReplyError(new Error('OOM')));
    }
    expect(command(breaker).sent).toBe(true);
  });

  test('after a while one tries, alone; when that works all are sent', async () => {
    const { clock, breaker } = await opened();
    await clock.advance(499);
    expect(command(breaker).sent).toBe(false);
    await clock.advance(1);
    const tries = command(breaker);
    expect(tries.sent).toBe(true);
    await clock.advance(10_000);
    expect(command(breaker).sent).toBe(false);
    await tries.succeeds();
    expect([command(breaker).sent, command(breaker).sent]).toEqual([true, true]);
  });

  test('when that fails, the next one tries as much later', async () => {
    const { clock, breaker } = await opened();
    await clock.advance(500);
    await command(breaker).fails();
    await clock.advance(499);
    expect(command(breaker).sent).toBe(false);
    await clock.advance(1);
    expect(command(breaker).sent).toBe(true);
  });

  test('what was sent before it opened and fails later neither lets a second one try nor puts off the first', async () => {
    const clock = new TestClock();
    const breaker = new CircuitBreaker(clock, 3, 500);
    const slow = [command(breaker), command(breaker)];
    for (let i = 0; i < 3; i++) await command(breaker).fails();
    await clock.advance(400);
    await slow[0]?.fails();
    await clock.advance(100);
    expect(command(breaker).sent).toBe(true);
    await slow[1]?.fails();
    await clock.advance(1_000);
    expect(command(breaker).sent).toBe(false);
  });

  test('what was sent before it opened and works after all closes it', async () => {
    const breaker = new CircuitBreaker(new TestClock(), 3, 500);
    const slow = command(breaker);
    for (let i = 0; i < 3; i++) await command(breaker).fails();
    await slow.succeeds();
    expect(command(breaker).sent).toBe(true);
  });
});

describe('a store that fails again and again', () => {
  test('is left alone: calls wait for no command, and come back to it within half a second of its return', async () => {
    const { clock, cache, store } = setUp();
    await cache.set('cached', 'stored', '60s');
    store.isAway();
    for (let i = 0; i < 3; i++) {
      const call = follow(cache.getOrLoad(`key${i}`, () => 'loaded', '60s'));
      await clock.advance(499);
      expect(call.settled).toBe(false);
      await clock.advance(1);
      expect(call.value).toBe('loaded');
    }
    store.sent.length = 0;
    const call = follow(cache.getOrLoad('key', () => 'loaded', '60s'));
    await clock.advance(0);
    expect([call.value, store.count()]).toEqual(['loaded', 0]);
    store.works();
    await clock.advance(500);
    expect(await cache.getOrLoad('cached', () => 'loaded', '60s')).toBe('stored');
  });

  test('however many call, one command tries at a time', async () => {
    const { clock, cache, store } = setUp();
    store.isAway();
    const call = (i: number) => void cache.getOrLoad(`key${i}`, () => 'loaded', '60s');
    for (let i = 0; i < 3; i++) call(i);
    await clock.advance(10);
    for (let i = 3; i < 6; i++) {
      call(i);
      await clock.advance(500);
    }
    store.sent.length = 0;
    for (let i = 0; i < 200; i++) {
      call(i);
      await clock.advance(10);
    }
    // Each takes 500 ms, and then it is left alone for 500 ms.
    expect(store.count('read')).toBeLessThanOrEqual(3);
    expect(store.count('read')).toBeGreaterThanOrEqual(2);
  });

  test('a store that answers with errors is asked each time', async () => {
    const { cache, store } = setUp();
    const { lead } = store;
    store.lead = async (request) => {
      await lead.call(store, { ...request, token: 'other#1' });
      await store.end({ ...request, token: 'other#1' });
      throw new StoreReplyError(new Error('OOM'));
    };
    for (let i = 0; i < 10; i++) expect(await cache.getOrLoad(`key${i}`, () => 'loaded', '60s')).toBe('loaded');
    expect(store.count('lead')).toBe(10);
  });

  test('end, renew, evict, set and the lock service are sent all the same', async () => {
    const { clock, cache, locks, store } = setUp();
    const loading = follow(cache.getOrLoad('loading', () => clock.sleep(3_000).then(() => 'loaded'), '60s'));
    await clock.advance(0);
    store.fails('read', 'rejects');
    for (let i = 0; i < 5; i++) await cache.getOrLoad('key', () => 'loaded', 1);
    expect(store.count('read')).toBe(1 + 3);
    await cache.evict('key');
    await cache.set('key', 'set', '60s');
    await locks.withLock('lock', { lease: '5s' }, async () => {});
    await clock.advance(3_000);
    expect(loading.value).toBe('loaded');
    expect(store.count('renew')).toBe(1);
    store.works();
    await clock.advance(500);
    expect([await cache.get('loading'), await cache.get('key')]).toEqual(['loaded', 'set']);
  });

  test('to read only what is not trusted is no try, and tells nothing about how it fares', async () => {
    const { clock, cache, store } = setUp();
    store.failsFor('replace', 'evicted', 'rejects');
    store.failsFor('read', 'key', 'rejects');
    await cache.evict('evicted').catch(() => {});
    for (let i = 0; i < 3; i++) await cache.get('key');
    await clock.advance(500);
    store.sent.length = 0;
    for (const key of ['evicted', 'key', 'evicted', 'key', 'key']) await cache.get(key);
    expect(store.sent).toEqual([{ command: 'read', key: 'key' }]);
    store.works();
    await clock.advance(500);
  });
});
