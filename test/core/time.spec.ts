import { expect, test } from '@jest/globals';
import { createStampede } from '../../lib/core/create.js';
import { MemoryServer } from '../../lib/memory/memory-server.js';
import { MemoryStore } from '../../lib/memory/memory-store.js';
import { TestClock } from '../support/clock.js';
import { follow, slowLoader } from './loaders.js';

/** A host whose clocks, the monotonic one and the wall clock, are not those of the store. */
function hostOf(server: MemoryServer, store: TestClock, ahead: number) {
  const clock = {
    now: () => store.now() + ahead,
    after: store.after.bind(store),
  };
  return createStampede({ store: new MemoryStore({ server }), clock, random: () => 0.5 });
}

test.each([600_000, -600_000])(
  'T3: a host whose clock is %p ms off sees the same freshness as the others',
  async (ahead) => {
    const clock = new TestClock();
    const server = new MemoryServer({ clock });
    const wrong = hostOf(server, clock, ahead);
    const right = hostOf(server, clock, 0);
    const realNow = Date.now;
    Date.now = () => realNow() + ahead;
    try {
      await wrong.cache.set('theirs', 1, '10s');
      await right.cache.getOrLoad('ours', () => 2, '10s');
      for (const host of [wrong, right]) {
        expect(await Promise.all(['theirs', 'ours'].map((key) => host.cache.has(key)))).toEqual([true, true]);
      }
      await clock.advance(9_999);
      expect(await Promise.all([wrong, right].map((host) => host.cache.has('ours')))).toEqual([true, true]);
      await clock.advance(1);
      expect(await Promise.all([wrong, right].map((host) => host.cache.has('ours')))).toEqual([false, false]);
      expect(await Promise.all([wrong, right].map((host) => host.cache.has('theirs')))).toEqual([false, false]);
    } finally {
      Date.now = realNow;
    }
    await Promise.all([wrong.close(), right.close()]);
  },
);

test('T3: a lease and a wait are as long on a host whose clock is off', async () => {
  const clock = new TestClock();
  const server = new MemoryServer({ clock });
  const [wrong, right] = [hostOf(server, clock, 600_000), hostOf(server, clock, 0)];
  const loader = slowLoader(clock, 12_000, (run) => run);
  const leader = follow(wrong.cache.getOrLoad('key', loader, '60s'));
  await clock.advance(10);
  const follower = follow(right.cache.getOrLoad('key', loader, { ttl: '60s', wait: '11s' }));
  const other = follow(wrong.cache.getOrLoad('key', loader, { ttl: '60s', wait: '11s' }));
  await clock.advance(10_999);
  expect([follower.settled, other.settled]).toEqual([false, false]);
  await clock.advance(1);
  expect([follower.error, other.error]).toEqual([
    expect.objectContaining({ waited: 11_000 }),
    expect.objectContaining({ waited: 11_000 }),
  ]);
  await clock.advance(1_000);
  expect(leader.value).toBe(1);
  expect(loader.runs).toBe(1);
  await Promise.all([wrong.close(), right.close()]);
  expect(clock.pending).toBe(0);
});
