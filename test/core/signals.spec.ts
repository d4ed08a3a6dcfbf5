import { describe, expect, test } from '@jest/globals';
import { LoadTimeoutError } from '../../lib/core/errors.js';
import { follow, slowLoader } from './loaders.js';
import { setUp } from './setting.js';

describe("a caller's own signal", () => {
  test('ends its own wait with its reason; the load goes on for the others and is stored', async () => {
    const { clock, cache } = setUp();
    const loader = slowLoader(clock, 100, (run) => run);
    const leaving = new AbortController();
    const first = follow(cache.getOrLoad('key', loader, { ttl: '60s', signal: leaving.signal }));
    const second = follow(cache.getOrLoad('key', loader, '60s'));
    await clock.advance(10);
    const reason = new Error('gone home');
    leaving.abort(reason);
    await clock.advance(0);
    expect(first.error).toBe(reason);
    expect(second.settled).toBe(false);
    await clock.advance(100);
    expect(second.value).toBe(1);
    expect(loader.signals[0]?.aborted).toBe(false);
  });

  test('that has aborted before: the call rejects, and nothing is loaded', async () => {
    const { clock, cache, store } = setUp();
    const loader = slowLoader(clock, 100, (run) => run);
    const call = cache.getOrLoad('key', loader, { ttl: '60s', signal: AbortSignal.abort('before') });
    await expect(call).rejects.toBe('before');
    await clock.advance(100);
    expect(loader.runs).toBe(0);
    expect(store.count('lead')).toBe(0);
  });

  test('that aborts after the answer does nothing, and nothing listens to it any more', async () => {
    const { cache } = setUp();
    const controller = new AbortController();
    let listeners = 0;
    const { signal } = controller;
    const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
    signal.addEventListener = (...args: unknown[]) => {
      listeners += 1;
      (add as (...args: unknown[]) => void)(...args);
    };
    signal.removeEventListener = (...args: unknown[]) => {
      listeners -= 1;
      (remove as (...args: unknown[]) => void)(...args);
    };
    expect(await cache.getOrLoad('key', () => 1, { ttl: '60s', signal })).toBe(1);
    expect(listeners).toBe(0);
    controller.abort();
  });

  test('of a follower: it leaves, and its flight stops waiting', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const loader = slowLoader(clock, 2_000, (run) => run);
    void processes[0]?.cache.getOrLoad('key', loader, '60s');
    await clock.advance(10);
    const leaving = new AbortController();
    const call = follow(processes[1]!.cache.getOrLoad('key', loader, { ttl: '60s', signal: leaving.signal }));
    await clock.advance(10);
    leaving.abort('bye');
    await clock.advance(2_000);
    expect(call.error).toBe('bye');
    expect(processes[1]?.store.sent.map(({ command }) => command)).toEqual(['read', 'lead']);
  });
});

describe('a load that nobody waits for any more', () => {
  test('goes on and is stored, by default; a call that comes meanwhile gets its value', async () => {
    const { clock, cache } = setUp();
    const loader = slowLoader(clock, 100, (run) => run);
    const leaving = new AbortController();
    cache.getOrLoad('key', loader, { ttl: '60s', signal: leaving.signal }).catch(() => {});
    await clock.advance(10);
    leaving.abort();
    await clock.advance(10);
    const next = follow(cache.getOrLoad('key', loader, '60s'));
    await clock.advance(80);
    expect(next.value).toBe(1);
    expect(loader.runs).toBe(1);
  });

  test('is aborted with abortWhenUnused, its lock goes, and the next call loads', async () => {
    const setting = setUp();
    const { clock, cache } = setting;
    const loader = slowLoader(clock, 100, (run) => run);
    const leaving = new AbortController();
    const options = { ttl: '60s', signal: leaving.signal, abortWhenUnused: true } as const;
    const calls = [1, 2].map(() => follow(cache.getOrLoad('key', loader, options)));
    await clock.advance(10);
    leaving.abort('bye');
    // In the same moment: it comes too late for the load that was aborted.
    const next = follow(cache.getOrLoad('key', loader, '60s'));
    await clock.advance(10);
    expect(calls.map(({ error }) => error)).toEqual(['bye', 'bye']);
    expect(loader.signals.map(({ aborted }) => aborted)).toEqual([true, false]);
    expect(loader.signals[0]?.reason).toMatchObject({ name: 'AbortError' });
    await clock.advance(100);
    expect(next.value).toBe(2);
    expect(await cache.get('key')).toBe(2);
  });

  test('is aborted with abortWhenUnused also without a lock, while the store is away', async () => {
    const { clock, cache, store } = setUp();
    store.isAway('rejects');
    const loader = slowLoader(clock, 100, (run) => run);
    const leaving = new AbortController();
    const options = { ttl: '60s', signal: leaving.signal, abortWhenUnused: true } as const;
    const call = follow(cache.getOrLoad('key', loader, options));
    await clock.advance(10);
    leaving.abort('bye');
    const next = follow(cache.getOrLoad('key', loader, '60s'));
    await clock.advance(110);
    expect(call.error).toBe('bye');
    expect(loader.signals.map(({ aborted }) => aborted)).toEqual([true, false]);
    expect(next).toMatchObject({ value: 2, error: undefined });
  });

  test('is not aborted while one of its callers still waits', async () => {
    const { clock, cache } = setUp();
    const loader = slowLoader(clock, 100, (run) => run);
    const leaving = new AbortController();
    const first = follow(cache.getOrLoad('key', loader, { ttl: '60s', signal: leaving.signal, abortWhenUnused: true }));
    const second = follow(cache.getOrLoad('key', loader, { ttl: '60s', abortWhenUnused: true }));
    await clock.advance(10);
    leaving.abort('bye');
    await clock.advance(100);
    expect([first.error, second.value]).toEqual(['bye', 1]);
  });
});

describe('maxLoad', () => {
  test('is how long a loader may take: then its signal aborts, the callers get LoadTimeoutError, and the lock goes', async () => {
    const setting = setUp();
    const { clock, cache, events } = setting;
    const loader = slowLoader(clock, 60_000, (run) => run);
    const calls = [1, 2].map(() => follow(cache.getOrLoad('key', loader, { ttl: '60s', maxLoad: '10s' })));
    await clock.advance(9_999);
    expect(loader.signals[0]?.aborted).toBe(false);
    await clock.advance(1);
    expect(loader.signals[0]?.reason).toBe(calls[0]?.error);
    for (const { error } of calls) {
      expect(error).toBeInstanceOf(LoadTimeoutError);
      expect(error).toMatchObject({ code: 'LOAD_TIMEOUT', key: 'key', maxLoad: 10_000 });
    }
    expect(setting.lockOf('key')).toBe(undefined);
    expect(events.at(-1)).toEqual({ type: 'load-failed', key: 'key', error: calls[0]?.error, duration: 10_000 });
    // What the loader does after that is ignored.
    await clock.advance(60_000);
    expect(await cache.has('key')).toBe(false);
  });

  test('counts also for a load without a lock', async () => {
    const { clock, cache, store } = setUp();
    store.isAway('rejects');
    const call = follow(cache.getOrLoad('key', () => clock.sleep(20_000), { ttl: '60s', maxLoad: '10s' }));
    await clock.advance(10_000);
    expect(call.error).toBeInstanceOf(LoadTimeoutError);
    await clock.advance(10_000);
  });

  test('a loader may look at its signal only after the abort, and finds it aborted', async () => {
    const { clock, cache } = setUp();
    const seen: unknown[] = [];
    const call = follow(
      cache.getOrLoad(
        'key',
        async (context) => {
          await clock.sleep(20);
          seen.push(context.signal.aborted, context.signal.reason);
        },
        { ttl: '60s', maxLoad: 10 },
      ),
    );
    await clock.advance(20);
    expect(seen).toEqual([true, call.error]);
  });
});
