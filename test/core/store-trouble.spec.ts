import { describe, expect, test } from '@jest/globals';
import { CommandTimeoutError } from '../../lib/core/errors.js';
import type { Fault } from './faulty-store.js';
import { crowd, expectAll, follow, slowLoader } from './loaders.js';
import { setUp } from './setting.js';

const FAULTS: readonly Fault[] = ['rejects', 'request lost', 'reply lost', { runsAfter: 700 }, { repliesAfter: 700 }];

describe('the trouble of the store is not the trouble of the caller', () => {
  for (const command of ['read', 'lead', 'end'] as const) {
    test.each(FAULTS)(
      `${command} %p: the loader answers, one flight a process, and nothing stays locked`,
      async (fault) => {
        const setting = setUp({ processes: 2 });
        const { clock, cache, store } = setting;
        const loader = slowLoader(clock, 100, (run) => run);
        store.fails(command, fault);
        const calls = crowd(20, () => cache.getOrLoad('key', loader, '60s')).map(follow);
        await clock.advance(100 + 500);
        expectAll(calls, 1);
        expect(loader.runs).toBe(1);
        store.works();
        await clock.advance(1_000);
        expect(setting.lockOf('key')).toBe(undefined);
      },
    );
  }

  test('the store is away altogether: nothing is stored, and each call answers within the load and one command', async () => {
    const { clock, cache, store, events } = setUp();
    store.isAway();
    const loader = slowLoader(clock, 100, (run) => run);
    const calls = crowd(20, () => cache.getOrLoad('key', loader, '60s')).map(follow);
    await clock.advance(599);
    expect(calls.some(({ settled }) => settled)).toBe(false);
    await clock.advance(1);
    expectAll(calls, 1);
    expect(events.map(({ type }) => type)).toEqual(['store-error', ...Array(20).fill('miss'), 'load', 'not-stored']);
    expect(events[0]).toEqual({ type: 'store-error', command: 'read', error: expect.any(CommandTimeoutError) });
    expect(events.at(-2)).toEqual({ type: 'load', key: 'key', alone: true, background: false });
    expect(store.count('lead', 'end')).toBe(0);
  });

  test('the loader that answers in its place fails: its callers get the very error', async () => {
    const { cache, store } = setUp();
    store.isAway('rejects');
    const error = new Error('down');
    await expect(cache.getOrLoad('key', () => Promise.reject(error), '60s')).rejects.toBe(error);
  });

  test('it comes back: the next call is cached again', async () => {
    const { cache, store } = setUp();
    store.isAway('rejects');
    expect(await cache.getOrLoad('key', () => 1, '60s')).toBe(1);
    store.works();
    expect(await cache.getOrLoad('key', () => 2, '60s')).toBe(2);
    expect(await cache.getOrLoad('key', () => 3, '60s')).toBe(2);
  });

  test.each(['request lost', 'reply lost'] as const)(
    'it falls silent (%s) while processes wait: they are answered within 550 ms and their own load',
    async (fault) => {
      const { clock, processes } = setUp({ processes: 4 });
      const loader = slowLoader(clock, 100, (run) => run);
      const led = follow(processes[0]!.cache.getOrLoad('key', () => clock.sleep(5_000), '60s'));
      await clock.advance(1);
      const calls = processes
        .slice(1)
        .flatMap(({ cache }) => crowd(20, () => cache.getOrLoad('key', loader, '60s')).map(follow));
      await clock.advance(3_000);
      for (const { store } of processes) store.isAway(fault);
      await clock.advance(550 + 100);
      expect(calls.every(({ settled, error }) => settled && !error)).toBe(true);
      expect(loader.runs).toBe(3);
      await clock.advance(5_000);
      expect(led.settled).toBe(true);
    },
  );

  test('a store that is slower than a look may take, and not slower than a command may, does no harm to a leader', async () => {
    const { clock, cache, store } = setUp();
    for (const command of ['read', 'lead', 'end', 'renew'] as const) store.fails(command, { repliesAfter: 450 });
    const call = follow(cache.getOrLoad('key', () => clock.sleep(100).then(() => 1), '60s'));
    await clock.advance(3 * 450 + 100);
    expect(call.value).toBe(1);
    store.works();
    expect(await cache.get('key')).toBe(1);
  });

  test('a follower whose poll fails loads by itself', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const follower = processes[1]!;
    void processes[0]!.cache.getOrLoad('key', () => clock.sleep(2_000), '60s');
    await clock.advance(10);
    const call = follow(follower.cache.getOrLoad('key', () => 'own', '60s'));
    await clock.advance(10);
    follower.store.isAway('rejects');
    await clock.advance(500);
    expect(call.value).toBe('own');
  });

  test('a lead that was answered too late is released at once, and once more when its reply says that it led', async () => {
    const setting = setUp();
    const { clock, cache, store } = setting;
    // The release overtakes it, as it may when the connection was a new one.
    store.fails('lead', { runsAfter: 700 });
    const call = follow(cache.getOrLoad('key', () => 1, '60s'));
    await clock.advance(500);
    expect(call.value).toBe(1);
    expect(store.sent.map(({ command }) => command)).toEqual(['read', 'lead', 'end']);
    await clock.advance(199);
    expect(setting.lockOf('key')).toBe(undefined);
    await clock.advance(1);
    expect(store.count('end')).toBe(2);
    expect(setting.lockOf('key')).toBe(undefined);
  });

  test('an end without a reply answers all who had joined before it was sent', async () => {
    const { clock, cache, store, events } = setUp();
    store.fails('end', 'request lost');
    const loader = slowLoader(clock, 100, (run) => run);
    const first = follow(cache.getOrLoad('key', loader, '60s'));
    await clock.advance(50);
    const second = follow(cache.getOrLoad('key', loader, '60s'));
    await clock.advance(550);
    expectAll([first, second], 1);
    expect(events.at(-1)).toEqual({
      type: 'not-stored',
      key: 'key',
      reason: 'store',
      error: expect.any(CommandTimeoutError),
    });
    await clock.advance(5_000);
  });

  test('an entry that the store could not write is answered, and an event says why', async () => {
    const { cache, store, events } = setUp();
    const { end } = store;
    store.end = async (request) => {
      await end.call(store, { ...request, entry: undefined });
      return { is: 'held', stored: false, error: 'OOM' };
    };
    expect(await cache.getOrLoad('key', () => 1, '60s')).toBe(1);
    expect(events.at(-1)).toEqual({ type: 'not-stored', key: 'key', reason: 'store', error: 'OOM' });
  });

  test('get and has answer as for a miss', async () => {
    const { cache, store } = setUp();
    await cache.set('key', 1, '60s');
    store.isAway('rejects');
    expect([await cache.get('key'), await cache.has('key')]).toEqual([undefined, false]);
  });

  test('a key that can not be read does not keep the others from their answers', async () => {
    const { cache, store } = setUp();
    await cache.set('good', 1, '60s');
    const { read } = store;
    store.read = async (keys) => {
      const { texts } = await read.call(store, keys);
      return { texts: keys.map((key, i) => (key === 'bad' ? new Error('WRONGTYPE') : texts[i])) };
    };
    const load = () => 'loaded';
    expect(await Promise.all(['bad', 'good'].map((key) => cache.getOrLoad<unknown>(key, load, '60s')))).toEqual([
      'loaded',
      1,
    ]);
  });

  test('commandTimeout is how long a command may go unanswered', async () => {
    const { clock, cache, store } = setUp({ commandTimeout: '50ms' });
    store.isAway();
    const call = follow(cache.getOrLoad('key', () => 1, '60s'));
    await clock.advance(49);
    expect(call.settled).toBe(false);
    await clock.advance(1);
    expect(call.value).toBe(1);
  });

  test('a store that is not ready at the start is told to the logger, and loaders answer', async () => {
    const errors: string[] = [];
    const logger = { log() {}, warn() {}, error: (message: string) => errors.push(message) };
    const { processes, cache, store } = setUp({ logger });
    store.start = () => Promise.reject(new Error('ECONNREFUSED'));
    store.isAway('rejects');
    await processes[0]?.start();
    expect(await cache.getOrLoad('key', () => 1, '60s')).toBe(1);
    expect(errors).toEqual([expect.stringContaining('ECONNREFUSED')]);
  });
});
