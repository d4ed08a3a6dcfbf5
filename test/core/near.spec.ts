import { describe, expect, test } from '@jest/globals';
import { createStampede } from '../../lib/core/create.js';
import { InvalidOptionError } from '../../lib/core/errors.js';
import type { LoadOptions } from '../../lib/core/options.js';
import { MemoryStore } from '../../lib/memory/memory-store.js';
import { settle } from '../support/clock.js';
import { follow, slowLoader } from './loaders.js';
import { type SettingOptions, setUp } from './setting.js';

/** Two processes with a near cache each. */
function stage(options: SettingOptions = {}) {
  const setting = setUp({ processes: 2, near: { max: 100 }, ...options });
  const { clock } = setting;
  const loader = slowLoader(clock, 0, (run) => ({ run }));
  const call = (index: number, load: Partial<LoadOptions> = {}, key = 'key') =>
    follow(setting.process(index).cache.getOrLoad<unknown>(key, loader, { ttl: 1_000, ...load }));
  const ask = async (index: number, load?: Partial<LoadOptions>, key?: string) => {
    const called = call(index, load, key);
    await clock.advance(0);
    return called.value;
  };
  const reads = (index: number) => setting.process(index).store.count('read');
  return { setting, clock, loader, call, ask, reads };
}

describe('a near hit', () => {
  test('costs no command, after one read has brought the value', async () => {
    const { setting, ask, loader, reads } = stage();
    await ask(0);
    await ask(0);
    expect(reads(0)).toBe(2);
    const before = setting.sent();
    for (let i = 0; i < 50; i++) expect(await ask(0)).toEqual({ run: 1 });
    expect(setting.sent() - before).toBe(0);
    expect(loader.runs).toBe(1);
    expect(setting.events.filter(({ type }) => type === 'near-hit')).toHaveLength(50);
  });

  test('is for keys of many as well: only the others are read', async () => {
    const { setting, ask, clock, reads } = stage();
    await ask(0);
    await ask(0);
    const { cache, store } = setting.process(0);
    const many = (options = {}) =>
      follow(cache.getOrLoadMany(['key', 'other'], (keys) => keys.map((key) => ({ key })), { ttl: 1_000, ...options }));
    const first = many();
    await clock.advance(20);
    expect(first.value).toEqual([{ run: 1 }, { key: 'other' }]);
    expect(store.sent.filter(({ command }) => command === 'read').at(-1)).toEqual({ command: 'read', key: 'other' });
    const before = reads(0);
    expect((await cache.getOrLoadMany(['key'], () => [], 1_000))[0]).toEqual({ run: 1 });
    expect(reads(0)).toBe(before);
    const without = many({ near: false });
    await clock.advance(20);
    expect(without.value).toEqual([{ run: 1 }, { key: 'other' }]);
    expect(reads(0)).toBe(before + 1);
  });

  test('is not for calls with `near: false`, nor for `get` and `has`', async () => {
    const { setting, ask, reads } = stage();
    await ask(0);
    await ask(0);
    await ask(0, { near: false });
    expect(reads(0)).toBe(3);
    expect(await setting.cache.get('key')).toEqual({ run: 1 });
    expect(await setting.cache.has('key')).toBe(true);
    expect(reads(0)).toBe(5);
  });

  test('is kept when one of those who asked together wants it', async () => {
    const { ask, reads } = stage();
    await ask(0);
    const before = reads(1);
    await Promise.all([ask(1, { near: false }), ask(1)]);
    await ask(1);
    expect(reads(1) - before).toBe(1);
  });

  test('is for calls with `near: true` only, where the defaults say false', async () => {
    const { ask, reads } = stage({ defaults: { near: false } });
    for (let i = 0; i < 3; i++) await ask(0);
    expect(reads(0)).toBe(3);
    // What was stored without it does not say how long it is fresh.
    await ask(0, { near: true });
    await ask(0, { near: true });
    expect(reads(0)).toBe(5);
    for (let i = 0; i < 3; i++) await ask(0, { near: true }, 'other');
    expect(reads(0)).toBe(7);
  });

  test('gives what `isolate` says: one object, copies, or one that is frozen', async () => {
    const { ask } = stage();
    await ask(0);
    const shared = await ask(0);
    expect(await ask(0)).toBe(shared);
    const [one, two] = [await ask(0, { isolate: 'decode' }), await ask(0, { isolate: 'decode' })];
    expect(one).toEqual({ run: 1 });
    expect(one).not.toBe(two);
    const frozen = await ask(0, { isolate: 'freeze' });
    expect(Object.isFrozen(frozen)).toBe(true);
    expect(await ask(0, { isolate: 'freeze' })).toBe(frozen);
    expect(Object.isFrozen(shared)).toBe(false);
  });

  test('is not given to a caller whose signal is aborted', async () => {
    const { clock, call, ask } = stage();
    await ask(0);
    await ask(0);
    const called = call(0, { signal: AbortSignal.abort(new Error('left')) });
    await clock.advance(0);
    expect(called.error).toEqual(new Error('left'));
  });
});

describe('a value in the near cache lives', () => {
  test('no longer than in the store, whenever it was read', async () => {
    const { clock, ask, loader, reads } = stage();
    await ask(0);
    await clock.advance(600);
    expect(await ask(1)).toEqual({ run: 1 });
    await clock.advance(398);
    expect(await ask(1)).toEqual({ run: 1 });
    expect(reads(1)).toBe(1);
    await clock.advance(2);
    expect(await ask(1)).toEqual({ run: 2 });
    expect(loader.runs).toBe(2);
  });

  test('not at all, if it was read in its last millisecond', async () => {
    const { clock, ask, reads } = stage();
    await ask(0);
    await clock.advance(999);
    expect(await ask(1)).toEqual({ run: 1 });
    expect(await ask(1)).toEqual({ run: 1 });
    expect(reads(1)).toBe(2);
    await clock.advance(1);
    expect(await ask(1)).toEqual({ run: 2 });
  });

  test('counted from when the read was sent, not from when its reply came', async () => {
    const { setting, clock, ask, call } = stage();
    await ask(0);
    setting.process(1).store.fails('read', { repliesAfter: 300 });
    const called = call(1);
    await clock.advance(300);
    expect(called.value).toEqual({ run: 1 });
    setting.process(1).store.works();
    await clock.advance(698);
    expect(await ask(1)).toEqual({ run: 1 });
    await clock.advance(1);
    expect(setting.process(1).store.count('read')).toBe(1);
    await ask(1);
    expect(setting.process(1).store.count('read')).toBe(2);
  });

  test('for its ttl, without the windows in which it may be stale', async () => {
    const { clock, ask, loader } = stage();
    await ask(0, { staleWhileRevalidate: '1m' });
    await ask(0, { staleWhileRevalidate: '1m' });
    await clock.advance(1_000);
    expect(await ask(0, { staleWhileRevalidate: '1m' })).toEqual({ run: 1 });
    await clock.advance(0);
    expect(loader.runs).toBe(2);
    expect(await ask(0, { staleWhileRevalidate: '1m' })).toEqual({ run: 2 });
  });

  test('at most for the `ttl` of the near cache', async () => {
    const { clock, ask, reads } = stage({ near: { max: 10, ttl: 100 } });
    await ask(0);
    await ask(1);
    await clock.advance(99);
    await ask(1);
    expect(reads(1)).toBe(1);
    await clock.advance(1);
    await ask(1);
    expect(reads(1)).toBe(2);
  });

  test('for ever, if it does so in the store', async () => {
    const { setting, clock, ask, reads } = stage();
    const endless = { ttl: Infinity };
    await ask(0, endless);
    await ask(1, endless);
    await clock.advance(1e10);
    expect(await ask(1, endless)).toEqual({ run: 1 });
    expect(reads(1)).toBe(1);
    await setting.process(0).cache.evict('key');
    await settle();
    expect(await ask(1, endless)).toEqual({ run: 2 });
  });

  test('not at all, if it was stored without a near cache: it does not say how long it is fresh', async () => {
    const { setting, clock, ask, reads } = stage();
    const parts = { store: new MemoryStore({ server: setting.server }), clock };
    const other = createStampede(parts);
    void other.cache.getOrLoad('key', () => 'old', 1_000);
    await clock.advance(0);
    for (let i = 0; i < 3; i++) expect(await ask(1)).toBe('old');
    expect(reads(1)).toBe(3);
    await clock.advance(1_000);
    for (let i = 0; i < 4; i++) await ask(1);
    expect(reads(1)).toBe(5);
    await other.close();
  });

  test('as long as it is one of the `max` last used, and as `maxSize` has room', async () => {
    const { ask, reads } = stage({ near: { max: 2 } });
    for (const key of ['a', 'b', 'c']) await ask(0, {}, key);
    for (const key of ['a', 'b', 'c']) await ask(1, {}, key);
    await ask(1, {}, 'b');
    await ask(1, {}, 'c');
    expect(reads(1)).toBe(3);
    await ask(1, {}, 'a');
    expect(reads(1)).toBe(4);

    const small = stage({ near: { max: 100, maxSize: 25 } });
    for (const key of ['a', 'b', 'c']) await small.ask(0, {}, key);
    for (const key of ['a', 'b', 'c']) await small.ask(1, {}, key);
    await small.ask(1, {}, 'c');
    expect(small.reads(1)).toBe(3);
    await small.ask(1, {}, 'a');
    expect(small.reads(1)).toBe(4);
  });
});

describe('what another process changes', () => {
  test.each([
    ['evict', { run: 2 }],
    ['expire', { run: 2 }],
    ['set', 'set'],
  ] as const)('by `%s` is answered as soon as its message is here', async (by, expected) => {
    const { setting, clock, ask } = stage();
    await ask(0);
    await ask(0);
    await ask(1);
    const [one, two] = [setting.process(0), setting.process(1)];
    const change = {
      evict: () => two.cache.evict('key'),
      expire: () => two.cache.expire('key'),
      set: () => two.cache.set('key', 'set', 1_000),
    };
    await change[by]();
    expect(await follow(two.cache.getOrLoad('key', () => ({ run: 2 }), 1_000)).value).toBeUndefined();
    await clock.advance(0);
    expect(await ask(0)).toEqual(expected);
    expect(one.events.some(({ type }) => type === 'near-hit')).toBe(false);
  });

  test('is not answered from a read that was under way when the message came', async () => {
    const { setting, clock, ask, call, reads } = stage();
    await ask(0);
    setting.process(1).store.fails('read', { repliesAfter: 100 });
    const called = call(1);
    await clock.advance(50);
    await setting.process(0).cache.evict('key');
    await clock.advance(50);
    // It had asked before the eviction.
    expect(called.value).toEqual({ run: 1 });
    setting.process(1).store.works();
    expect(await ask(1)).toEqual({ run: 2 });
    expect(reads(1)).toBe(2);
  });

  test('of another key spoils no read', async () => {
    const { setting, clock, ask, call, reads } = stage();
    await ask(0);
    setting.process(1).store.fails('read', { repliesAfter: 100 });
    call(1);
    await clock.advance(50);
    await setting.process(0).cache.evict('other');
    await clock.advance(50);
    setting.process(1).store.works();
    await ask(1);
    expect(reads(1)).toBe(1);
  });

  test('is more than it can tell apart: then no read that was under way is kept', async () => {
    const { setting, clock, ask, call, reads } = stage();
    await ask(0);
    const { store } = setting.process(1);
    store.fails('read', { repliesAfter: 100 });
    call(1);
    await clock.advance(50);
    for (let i = 0; i < 10_001; i++) store.changes?.changed(`other ${i}`);
    await clock.advance(50);
    store.works();
    await ask(1);
    expect(reads(1)).toBe(2);
    await ask(1);
    expect(reads(1)).toBe(2);
  });
});

describe('the process that changes a key', () => {
  test('never answers what was before, though no message comes, and though a read was under way', async () => {
    const { setting, clock, ask, call } = stage();
    const { cache, store } = setting.process(0);
    store.losesWakeUps = true;
    await ask(0);
    await ask(0);
    store.fails('read', { repliesAfter: 100 });
    const before = call(0, { near: false });
    await clock.advance(50);
    await cache.evict('key');
    await clock.advance(50);
    expect(before.value).toEqual({ run: 1 });
    store.works();
    expect(await ask(0)).toEqual({ run: 2 });
    await cache.set('key', 'set', 1_000);
    expect(await ask(0)).toBe('set');
    await cache.expire('key');
    expect(await ask(0)).toEqual({ run: 3 });
  });

  test('answers nothing near while an eviction is to be made up for', async () => {
    const { setting, clock, ask, loader } = stage();
    await ask(0);
    await ask(0);
    setting.store.fails('replace', 'rejects');
    await expect(setting.cache.evict('key')).rejects.toThrow();
    expect(await ask(0)).toEqual({ run: 2 });
    setting.store.works();
    await clock.advance(300);
    await ask(0);
    await ask(0);
    expect(loader.runs).toBe(3);
  });
});

describe('the subscription', () => {
  test('that is lost empties the near cache, which stays off until it is back', async () => {
    const { setting, ask, reads } = stage();
    await ask(0);
    await ask(0);
    const { changes } = setting.store;
    changes?.deaf();
    await ask(0);
    await ask(0);
    expect(reads(0)).toBe(4);
    changes?.listens(2_000);
    await ask(0);
    await ask(0);
    expect(reads(0)).toBe(5);
  });

  test('that is lost and back spoils a read that was under way', async () => {
    const { setting, clock, ask, call, reads } = stage();
    await ask(0);
    const { store } = setting.process(1);
    store.fails('read', { repliesAfter: 100 });
    call(1);
    await clock.advance(50);
    store.changes?.deaf();
    store.changes?.listens(2_000);
    await clock.advance(50);
    store.works();
    await ask(1);
    expect(reads(1)).toBe(2);
  });

  test('that is not heard of for as long as it is trusted counts as lost', async () => {
    const { setting, clock, ask, reads } = stage();
    setting.store.changes?.listens(500);
    await ask(0);
    await ask(0);
    await clock.advance(499);
    await ask(0);
    expect(reads(0)).toBe(2);
    await clock.advance(1);
    await ask(0);
    await ask(0);
    expect(reads(0)).toBe(4);
  });
});

test('a text that can not be read is no near hit, and throws nothing', async () => {
  const { setting, ask } = stage();
  await ask(0);
  await ask(0);
  setting.process(1).store.changes?.changed('key');
  setting.server.entries.set('key', '1;1700000100000;0;3;{x}', 1_000);
  expect(await ask(1)).toEqual({ run: 2 });
  expect(await ask(1)).toEqual({ run: 2 });
  expect(setting.process(1).events.filter(({ type }) => type === 'unreadable')).not.toHaveLength(0);
});

test('a near hit refreshes early, in the background, if its time has come', async () => {
  const numbers = [0.5];
  const { clock, setting } = stage({ random: () => numbers[0]! });
  const loader = slowLoader(clock, 100, (run) => run);
  const ask = async () => {
    const called = follow(setting.cache.getOrLoad('slow', loader, { ttl: 1_000, earlyRefresh: 1 }));
    await clock.advance(0);
    return called.value;
  };
  await ask();
  await clock.advance(100);
  await ask();
  await clock.advance(500);
  expect(await ask()).toBe(1);
  expect(loader.runs).toBe(1);
  // 100 ms times -ln(0.001) is more than the 500 ms that are left.
  numbers[0] = 0.999;
  expect(await ask()).toBe(1);
  expect(loader.runs).toBe(2);
  numbers[0] = 0.5;
  expect(await ask()).toBe(1);
  expect(loader.runs).toBe(2);
  await clock.advance(500);
  expect(await ask()).toBe(2);
});

describe('options', () => {
  const create = (options: object) => createStampede({ store: new MemoryStore() }, options);

  test.each([
    [{ near: true }, 'near'],
    [{ near: 100 }, 'near'],
    [{ near: {} }, 'near.max'],
    [{ near: { max: 0 } }, 'near.max'],
    [{ near: { max: 1.5 } }, 'near.max'],
    [{ near: { max: 10, maxSize: '1mb' } }, 'near.maxSize'],
    [{ near: { max: 10, ttl: '1 minute' } }, 'near.ttl'],
    [{ near: { max: 10, ttl: 0 } }, 'near.ttl'],
    [{ near: { max: 10, size: 5 } }, /size .* no option of near/],
    [{ defaults: { near: 'yes' } }, 'near'],
  ])('%j is an error that names it', (options, name) => {
    expect(() => create(options)).toThrow(InvalidOptionError);
    expect(() => create(options)).toThrow(name);
  });

  test('near: true where there is no near cache, or a store that tells of no changes, is an error', async () => {
    const { cache } = create({});
    await expect(cache.getOrLoad('key', () => 1, { ttl: 1, near: true })).rejects.toThrow(InvalidOptionError);
    await expect(cache.getOrLoadMany(['key'], () => [1], { ttl: 1, near: true })).rejects.toThrow(InvalidOptionError);
    const store = Object.defineProperty(new MemoryStore(), 'onChange', { value: undefined });
    expect(() => createStampede({ store }, { near: { max: 1 } })).toThrow(/near/);
    expect(() => create({ defaults: { near: true } })).toThrow(InvalidOptionError);
  });

  test('false is none', async () => {
    const { cache } = create({ near: false });
    expect(await cache.getOrLoad('key', () => 1, 1_000)).toBe(1);
  });
});
