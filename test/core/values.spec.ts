import { Readable } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import { of } from 'rxjs';
import { type Codec, jsonCodec } from '../../lib/core/codec.js';
import { formatEntry } from '../../lib/core/entry.js';
import { expectAll, follow, slowLoader } from './loaders.js';
import { setUp } from './setting.js';

describe('values', () => {
  test.each([0, -0, '', 'undefined', 'NaN', false, Number.NaN, Number.NEGATIVE_INFINITY, null, undefined, [], {}])(
    'V1: %p is loaded once, and a hit equals the miss',
    async (value) => {
      const { clock, processes } = setUp({ processes: 2 });
      const loader = slowLoader(clock, 10, () => value);
      const miss = processes.map(({ cache }) => follow(cache.getOrLoad('key', loader, '60s')));
      await clock.advance(10);
      const hit = processes.map(({ cache }) => follow(cache.getOrLoad('key', loader, '60s')));
      await clock.advance(0);
      expectAll([...miss, ...hit], value);
      expect(Object.is(hit[0]?.value, value) || typeof value === 'object').toBe(true);
      expect(loader.runs).toBe(1);
    },
  );

  test('V1: get answers undefined for a stored undefined and for a miss; has tells them apart', async () => {
    const { cache } = setUp();
    await cache.set('stored', undefined, '60s');
    expect([await cache.get('stored'), await cache.has('stored')]).toEqual([undefined, true]);
    expect([await cache.get('missing'), await cache.has('missing')]).toEqual([undefined, false]);
  });

  test('V2: a Date is a Date on a miss and its text on a hit, as the docs say, and a codec lifts that', async () => {
    const dates: Codec = {
      encode: (value) => JSON.stringify(value, (_key, inner) => inner),
      decode: (text) =>
        JSON.parse(text, (_key, inner) => (/^\d{4}-\d\d-\d\dT/.test(String(inner)) ? new Date(String(inner)) : inner)),
    };
    const { cache } = setUp();
    const load = () => ({ at: new Date(0), nested: [{ at: new Date(1) }] });
    expect(await cache.getOrLoad('json', load, '60s')).toEqual(load());
    expect(await cache.getOrLoad<unknown>('json', load, '60s')).toEqual({
      at: '1970-01-01T00:00:00.000Z',
      nested: [{ at: '1970-01-01T00:00:00.001Z' }],
    });
    for (let i = 0; i < 2; i++) {
      expect(await cache.getOrLoad('dates', load, { ttl: '60s', codec: dates })).toEqual(load());
    }
  });

  test("V2: with isolate: 'decode' hit and miss have the same types", async () => {
    const { cache } = setUp({ defaults: { isolate: 'decode' } });
    const load = () => ({ at: new Date(0) });
    const miss = await cache.getOrLoad('key', load, '60s');
    const hit = await cache.getOrLoad('key', load, '60s');
    expect(miss).toEqual({ at: '1970-01-01T00:00:00.000Z' });
    expect(hit).toEqual(miss);
  });

  test('V3: what JSON can not say is answered, an event says why it was not stored, and the lock is released', async () => {
    const setting = setUp();
    const { cache, events } = setting;
    expect(await cache.getOrLoad('key', () => ({ n: 1n }), '60s')).toEqual({ n: 1n });
    expect(events.at(-1)).toEqual({
      type: 'not-stored',
      key: 'key',
      reason: 'unserializable',
      error: expect.any(TypeError),
    });
    expect(setting.lockOf('key')).toBe(undefined);
    expect(await cache.has('key')).toBe(false);
    await expect(cache.set('key', 1n, '60s')).rejects.toBeInstanceOf(TypeError);
  });

  const async = async function* () {
    yield 1;
  };
  const sync = function* () {
    yield 1;
  };
  test.each<[string, unknown]>([
    ['a Map', new Map([['a', 1]])],
    ['a Set', new Set([1])],
    ['an Observable', of(1)],
    ['an async generator', async()],
    ['a generator', sync()],
    ['a stream', Readable.from(['a'])],
    ['a function', () => 1],
  ])('V3: so is %s, of which JSON keeps nothing', async (_what, value) => {
    const { cache, events } = setUp();
    const load = () => value;
    for (let i = 0; i < 2; i++) expect(await cache.getOrLoad('key', load, '60s')).toBe(value);
    expect(events.filter(({ type }) => type === 'load')).toHaveLength(2);
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'not-stored', reason: 'unserializable', error: expect.any(TypeError) }),
    );
    expect(await cache.has('key')).toBe(false);
    await expect(cache.set('key', value, '60s')).rejects.toThrow(/can't be stored as JSON/);
  });

  test('V2: inside of a value, and with a toJSON, they are what JSON makes of them', async () => {
    const { cache } = setUp();
    class Named extends Map<string, number> {
      toJSON() {
        return [...this];
      }
    }
    await cache.set('inside', { map: new Map([['a', 1]]), list: [new Set([1])] }, '60s');
    await cache.set('toJSON', new Named([['a', 1]]), '60s');
    await cache.set('date', new Date(0), '60s');
    expect(await cache.get('inside')).toEqual({ map: {}, list: [{}] });
    expect(await cache.get('toJSON')).toEqual([['a', 1]]);
    expect(await cache.get('date')).toBe('1970-01-01T00:00:00.000Z');
  });

  test('V3: it is loaded once for each waiting process, one after the other', async () => {
    const { clock, processes } = setUp({ processes: 3 });
    const loader = slowLoader(clock, 10, () => 1n);
    const calls = processes.flatMap(({ cache }) => [1, 2].map(() => follow(cache.getOrLoad('key', loader, '60s'))));
    await clock.advance(100);
    expectAll(calls, 1n);
    expect([loader.runs, loader.most]).toEqual([3, 1]);
  });

  const good = formatEntry('"whole"', 7);
  test.each(['Foo', '', good.slice(0, -4), `2${good.slice(1)}`, '1;;7;3;{"a', '1;;0;9;undefined!'])(
    'V4: the stored text %p is a miss with an event, and is overwritten',
    async (text) => {
      const { server, cache, events } = setUp();
      server.entries.set('key', text, 60_000);
      expect(await cache.get('key')).toBe(undefined);
      expect(await cache.has('key')).toBe(false);
      expect(await cache.getOrLoad('key', () => 'loaded', '60s')).toBe('loaded');
      expect(events).toContainEqual({ type: 'unreadable', key: 'key', error: expect.any(Error) });
      expect(events.filter(({ type }) => type === 'load')).toHaveLength(1);
      expect(await cache.get('key')).toBe('loaded');
    },
  );

  test('V4: a text that only this codec can not read is a miss too', async () => {
    const { cache } = setUp();
    const picky: Codec = { ...jsonCodec, decode: (text) => (text === '"theirs"' ? fail() : JSON.parse(text)) };
    await cache.set('key', 'theirs', '60s');
    expect(await cache.getOrLoad('key', () => 'mine', { ttl: '60s', codec: picky })).toBe('mine');
    expect(await cache.get('key')).toBe('mine');
  });

  test('V4: an error in the place of a text is a miss', async () => {
    const { cache, store } = setUp();
    store.read = async (keys) => ({ texts: keys.map(() => new Error('WRONGTYPE')) });
    expect(await cache.get('key')).toBe(undefined);
    expect(await cache.getOrLoad('key', () => 'loaded', '60s')).toBe('loaded');
  });
});

function fail(): never {
  throw new Error('not mine');
}
