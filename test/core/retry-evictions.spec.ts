import { describe, expect, test } from '@jest/globals';
import { CacheEvictionError, CacheUnavailableError } from '../../lib/core/errors.js';
import { Events } from '../../lib/core/events.js';
import { PendingEvictions } from '../../lib/core/pending-evictions.js';
import { TestClock } from '../support/clock.js';
import { follow } from './loaders.js';
import { setUp } from './setting.js';

async function stage(retryEvictions = true) {
  const setting = setUp({ processes: 2, retryEvictions });
  const { clock, cache, store, events } = setting;
  await clock.advance(10);
  for (const key of ['key', 'other']) await cache.set(key, 'old', '60s');
  events.length = 0;
  return { setting, clock, cache, store, events };
}

describe('an eviction that does not reach the store', () => {
  test('rejects, and is made up for when the store is there, with an event for each', async () => {
    const { setting, clock, cache, store, events } = await stage();
    store.fails('replace', 'rejects');
    await expect(cache.evict('key')).rejects.toBeInstanceOf(CacheEvictionError);
    expect(events.filter(({ type }) => type !== 'store-error')).toEqual([
      { type: 'evict-failed', key: 'key', error: new Error('replace was refused'), willRetry: true },
    ]);
    await clock.advance(1_000);
    expect(store.count('replace')).toBe(2 + 1 + 4);
    store.works();
    await clock.advance(250);
    expect(await setting.process(1).cache.has('key')).toBe(false);
    expect(events.at(-1)).toEqual({ type: 'evict', key: 'key' });
    store.sent.length = 0;
    await clock.advance(10_000);
    expect(store.sent).toEqual([]);
  });

  test('until then nothing that is stored for this key is answered here; other keys are', async () => {
    const { clock, cache, store } = await stage();
    store.failsFor('replace', 'key', 'rejects');
    await cache.evict('key').catch(() => {});
    store.sent.length = 0;
    const load = (key: string) => cache.getOrLoad(key, () => 'new', '60s');
    expect(await Promise.all(['key', 'other'].map(load))).toEqual(['new', 'old']);
    expect(await Promise.all([cache.get('key'), cache.has('key'), cache.get('other')])).toEqual([
      undefined,
      false,
      'old',
    ]);
    // Its lock is not asked for either, since who leads rechecks.
    expect(store.count('lead')).toBe(0);
    store.works();
    await clock.advance(250);
    expect(await load('key')).toBe('new');
    expect(await cache.get('key')).toBe('new');
  });

  test('a call that had read before it does not ask for the lock, whose recheck may find it', async () => {
    const { setting, clock, cache, store } = await stage();
    store.fails('read', { repliesAfter: 100 });
    const call = follow(cache.getOrLoad('filled', () => 'new', '60s'));
    await clock.advance(10);
    await setting.process(1).cache.set('filled', 'old', '60s');
    store.fails('replace', 'rejects');
    await cache.evict('filled').catch(() => {});
    await clock.advance(90);
    expect([call.value, store.count('lead')]).toEqual(['new', 0]);
    store.works();
    await clock.advance(250);
  });

  test('staleness does not bring it back', async () => {
    const { clock, cache, store } = await stage();
    const options = { ttl: '1s', staleWhileRevalidate: '60s', staleIfError: '60s' } as const;
    await cache.getOrLoad('stale', () => 'old', options);
    await clock.advance(2_000);
    store.fails('replace', 'rejects');
    await cache.evict('stale').catch(() => {});
    const error = new Error('down');
    await expect(cache.getOrLoad('stale', () => Promise.reject(error), options)).rejects.toBe(error);
    store.works();
    await clock.advance(250);
  });

  test('retryEvictions: false leaves it at that', async () => {
    const { clock, cache, store, events } = await stage(false);
    store.fails('replace', 'rejects');
    await expect(cache.evict('key')).rejects.toBeInstanceOf(CacheEvictionError);
    expect(events.at(-1)).toMatchObject({ type: 'evict-failed', willRetry: false });
    store.works();
    await clock.advance(10_000);
    expect(await cache.get('key')).toBe('old');
  });

  test('one that succeeds later has made up for it', async () => {
    const { cache, store } = await stage();
    store.fails('replace', 'rejects');
    await cache.evict('key').catch(() => {});
    store.works();
    await cache.evict('key');
    await cache.set('key', 'new', '60s');
    expect(await cache.get('key')).toBe('new');
  });

  test('one that succeeds, but was sent before one that failed, has not', async () => {
    const { clock, cache, store } = await stage();
    store.fails('replace', 'rejects');
    await cache.evict('key').catch(() => {});
    store.fails('replace', { repliesAfter: 100 });
    const slow = follow(cache.evict('key'));
    await clock.advance(10);
    store.fails('replace', 'rejects');
    await cache.evict('key').catch(() => {});
    await clock.advance(100);
    expect(slow.settled).toBe(true);
    // It ran before what the last one was to remove was written.
    expect(await cache.getOrLoad('key', () => 'loaded', '60s')).toBe('loaded');
    expect(store.count('lead')).toBe(0);
    store.works();
    await clock.advance(250);
  });

  test('a retry that succeeds, but was sent before one that failed, has not', async () => {
    const { clock, cache, store } = await stage();
    store.fails('replace', 'rejects');
    await cache.evict('key').catch(() => {});
    store.fails('replace', { repliesAfter: 100 });
    await clock.advance(260);
    store.fails('replace', 'rejects');
    await cache.evict('key').catch(() => {});
    await clock.advance(100);
    expect(await cache.getOrLoad('key', () => 'loaded', '60s')).toBe('loaded');
    expect(store.count('lead')).toBe(0);
    store.works();
    await clock.advance(500);
    expect(store.sent.at(-1)).toEqual({ command: 'replace', key: 'key' });
  });

  test('expire fails and is made up for likewise', async () => {
    const { clock, cache, store, events } = await stage();
    store.fails('replace', 'rejects');
    await expect(cache.expire('key')).rejects.toBeInstanceOf(CacheUnavailableError);
    expect(await cache.has('key')).toBe(false);
    store.works();
    await clock.advance(250);
    expect(events.at(-1)).toEqual({ type: 'expire', key: 'key' });
    const options = { ttl: '60s', staleWhileRevalidate: '60s' } as const;
    expect(await cache.getOrLoad<string>('key', () => 'new', options)).toBe('old');
  });

  test.each(['fails', 'works'] as const)(
    'an expire that comes after it, and %s, does not take its place',
    async (and) => {
      const { clock, cache, store } = await stage();
      store.fails('replace', 'rejects');
      await cache.evict('key').catch(() => {});
      if (and === 'works') store.works();
      await cache.expire('key').catch(() => {});
      store.works();
      await clock.advance(250);
      const options = { ttl: '60s', staleWhileRevalidate: '60s' } as const;
      expect(await cache.getOrLoad('key', () => 'new', options)).toBe('new');
    },
  );

  test('closing gives it up, also one that fails while closing', async () => {
    const { setting, clock, cache, store } = await stage();
    store.fails('replace', 'rejects');
    await cache.evict('key').catch(() => {});
    store.fails('replace', 'request lost');
    const evicting = follow(cache.evict('other'));
    const closing = follow(setting.process(0).close());
    await clock.advance(500);
    expect([evicting.error, closing.settled]).toEqual([expect.any(CacheEvictionError), true]);
    store.sent.length = 0;
    await clock.advance(10_000);
    expect([store.sent, clock.pending]).toEqual([[], 0]);
  });
});

describe('pending evictions', () => {
  test('are bounded: the oldest is given up, with an event', async () => {
    const events = new Events();
    const seen: unknown[] = [];
    events.stream.subscribe((event) => seen.push(event));
    const clock = new TestClock();
    const tried: string[] = [];
    const evict = (key: string) => {
      tried.push(key);
      return Promise.reject(new Error('away'));
    };
    const pending = new PendingEvictions(evict, clock, events);
    for (let i = 0; i <= 10_000; i++) pending.add(`key${i}`, 'evict');
    expect([pending.of('key0'), pending.of('key1')]).toEqual([undefined, { key: 'key1', by: 'evict' }]);
    expect(seen).toEqual([expect.objectContaining({ type: 'evict-failed', key: 'key0', willRetry: false })]);
    // One at a time, as long as that fails, each in turn.
    await clock.advance(750);
    expect(tried).toEqual(['key1', 'key2', 'key3']);
    pending.close();
    expect(clock.pending).toBe(0);
  });
});
