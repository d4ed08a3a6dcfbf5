import { describe, expect, test } from '@jest/globals';
import { InvalidOptionError } from '../../lib/core/errors.js';
import { crowd, expectAll, follow, slowLoader } from './loaders.js';
import { type Setting, setUp } from './setting.js';

describe('ttl', () => {
  test.each([
    [1_500, 1_500],
    ['1500ms', 1_500],
    ['1.5s', 1_500],
    ['1.1s', 1_100],
    ['2m', 120_000],
    ['1.5h', 5_400_000],
    ['7d', 604_800_000],
    [600.001, 601],
    [0.1, 1],
  ] as const)('T1: %p keeps the value for %p ms', async (ttl, milliseconds) => {
    const setting = setUp();
    await setting.cache.getOrLoad('key', () => 1, ttl);
    expect(timeLeft(setting)).toBe(milliseconds);
    await setting.clock.advance(milliseconds - 1);
    expect(await setting.cache.has('key')).toBe(true);
    await setting.clock.advance(1);
    expect(await setting.cache.has('key')).toBe(false);
  });

  test('T1: Infinity never expires', async () => {
    const setting = setUp();
    await setting.cache.getOrLoad('key', () => 1, Infinity);
    await setting.cache.getOrLoad('jittered', () => 1, { ttl: Infinity, ttlJitter: 0.5 });
    await setting.clock.advance(1e15);
    expect([await setting.cache.has('key'), await setting.cache.has('jittered')]).toEqual([true, true]);
  });

  test('T1: 0 stores nothing, and is still one load for concurrent callers', async () => {
    const { clock, processes, events } = setUp({ processes: 3 });
    const loader = slowLoader(clock, 10, (run) => run);
    const calls = processes.flatMap(({ cache }) => crowd(10, () => cache.getOrLoad('key', loader, 0)).map(follow));
    await clock.advance(10);
    expectAll(calls, 1);
    expect(loader.runs).toBe(1);
    expect(events.at(-1)).toEqual({ type: 'not-stored', key: 'key', reason: 'ttl' });
    expect(await processes[0]?.cache.has('key')).toBe(false);
  });

  test.each(['1500', '60 secons', '60 s', '', '-1s', '1e3ms', Number.NaN, -1, -Infinity, null, undefined, {}, true])(
    'T1: %p is an error that names the option, before anything is sent',
    async (ttl) => {
      const { cache, store } = setUp();
      const loader = () => Promise.reject(new Error('must not load'));
      for (const options of [ttl, { ttl }] as never[]) {
        await expect(cache.getOrLoad('key', loader, options)).rejects.toThrow(InvalidOptionError);
        await expect(cache.getOrLoad('key', loader, options)).rejects.toMatchObject({
          option: 'ttl',
          code: 'INVALID_OPTION',
        });
        await expect(cache.set('key', 1, options)).rejects.toThrow(/^ttl must be a duration/);
      }
      expect(store.sent).toEqual([]);
    },
  );

  test('a function of the value', async () => {
    const setting = setUp();
    const ttl = (value: { seconds: number }) => `${value.seconds}s` as const;
    await setting.cache.getOrLoad('key', () => ({ seconds: 3 }), ttl);
    expect(timeLeft(setting)).toBe(3_000);
    await setting.cache.set('key', { seconds: 4 }, { ttl });
    expect(timeLeft(setting)).toBe(4_000);
  });

  test('a function that throws or gives no duration: the value is answered and not stored, and an event says so', async () => {
    const { cache, events } = setUp();
    const thrown = new Error('ttl threw');
    for (const [ttl, error] of [
      [() => Promise.reject(thrown).catch(() => 5) as never, expect.any(InvalidOptionError)],
      [
        () => {
          throw thrown;
        },
        thrown,
      ],
    ] as const) {
      expect(await cache.getOrLoad('key', () => 1, ttl)).toBe(1);
      expect(events.at(-1)).toEqual({ type: 'not-stored', key: 'key', reason: 'options', error });
    }
    expect(await cache.has('key')).toBe(false);
  });

  test('ttlJitter shortens it at random by up to that part, and never lengthens it', async () => {
    let random = 0;
    const setting = setUp({ random: () => random, defaults: { ttlJitter: 0.2 } });
    const lefts: number[] = [];
    for (random of [0, 0.5, 0.999999]) {
      await setting.cache.set('key', 1, 10_000);
      lefts.push(timeLeft(setting));
    }
    expect(lefts).toEqual([10_000, 9_000, 8_001]);
    await setting.cache.set('key', 1, { ttl: 10_000, ttlJitter: 0 });
    expect(timeLeft(setting)).toBe(10_000);
    await setting.cache.set('key', 1, { ttl: 1, ttlJitter: 1 });
    expect(await setting.cache.has('key')).toBe(true);
  });

  test('cacheIf decides whether to store; it is asked once, of the value', async () => {
    const { clock, cache, events } = setUp();
    const asked: unknown[] = [];
    const cacheIf = (value: string) => asked.push(value) > 1;
    const load = () => clock.sleep(10).then(() => 'value');
    const calls = crowd(3, () => cache.getOrLoad('key', load, { ttl: '60s', cacheIf })).map(follow);
    await clock.advance(10);
    expectAll(calls, 'value');
    expect(asked).toEqual(['value']);
    expect(events.at(-1)).toEqual({ type: 'not-stored', key: 'key', reason: 'cacheIf' });
    expect(await cache.has('key')).toBe(false);
    void cache.getOrLoad('key', load, { ttl: '60s', cacheIf });
    await clock.advance(10);
    expect(await cache.has('key')).toBe(true);
  });

  test('cacheIf that throws stores nothing, and an event says so', async () => {
    const { cache, events } = setUp();
    const error = new Error('cacheIf threw');
    const cacheIf = () => {
      throw error;
    };
    expect(await cache.getOrLoad('key', () => 1, { ttl: '60s', cacheIf })).toBe(1);
    expect(events.at(-1)).toEqual({ type: 'not-stored', key: 'key', reason: 'options', error });
  });

  test('set with a ttl of 0 evicts', async () => {
    const { cache } = setUp();
    await cache.set('key', 1, '60s');
    await cache.set('key', 2, 0);
    expect(await cache.has('key')).toBe(false);
  });
});

function timeLeft({ server }: Setting): number {
  return server.entries.timeLeft('key');
}
