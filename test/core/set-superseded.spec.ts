import { expect, test } from '@jest/globals';
import { setUp } from './setting.js';

test('a set whose claim was taken over by one that never ends leaves no old value', async () => {
  const { clock, processes } = setUp({ processes: 2 });
  const [a, b] = processes as [(typeof processes)[0], (typeof processes)[0]];
  await a.cache.set('key', 'old', '60s');
  // Between the two steps of the first the second claims, and dies before its own end.
  const { end } = a.store;
  a.store.end = async (request) => {
    await b.store.replace({ key: 'key', by: { claim: `${b.store.process}#99`, lease: 200 } });
    return end.call(a.store, request);
  };
  await a.cache.set('key', 'first', '60s');
  expect(await a.cache.get('key')).toBe(undefined);
  await clock.advance(300);
  expect(await a.cache.has('key')).toBe(false);
});

test('a set that is refused leaves no old value, nor the old expiry of an equal one', async () => {
  const setting = setUp();
  const { cache, store, clock } = setting;
  await cache.set('key', 'value', '1h');
  const { end } = store;
  store.end = async (request) => {
    setting.loseLock('key');
    return end.call(store, request);
  };
  await cache.set('key', 'value', '2s');
  await clock.advance(60_000);
  expect(await cache.get('key')).toBe(undefined);
});

test('closing tells the users of a lock that it is no longer theirs', async () => {
  const { locks, processes } = setUp();
  const lock = await locks.acquire('key');
  await processes[0]?.close();
  expect(lock.signal.aborted).toBe(true);
  expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST' });
});
