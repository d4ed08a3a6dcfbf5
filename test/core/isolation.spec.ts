import { describe, expect, test } from '@jest/globals';
import type { Isolation } from '../../lib/core/options.js';
import { follow } from './loaders.js';
import { setUp } from './setting.js';

interface Product {
  name: string;
  tags: string[];
}

describe('isolate: what callers that share one answer get', () => {
  test("'none' (the default): one object, the loader's own on a miss", async () => {
    const { miss, hit, made } = await fourCallers(undefined);
    expect(miss[0]).toBe(miss[1]);
    expect(miss[0]).toBe(made);
    expect(hit[0]).toBe(hit[1]);
  });

  test("'decode': each its own copy, so that a change reaches nobody else", async () => {
    const { miss, hit, made } = await fourCallers('decode');
    for (const [mine, theirs] of [miss, hit]) {
      mine?.tags.push('changed');
      expect(theirs).toEqual({ name: 'chair', tags: ['new'] });
    }
    expect(miss[0]).not.toBe(made);
  });

  test("'freeze': one object, frozen to its depths, and not the loader's own, which its maker may still change", async () => {
    const { miss, hit, made } = await fourCallers('freeze');
    for (const [mine, theirs] of [miss, hit]) {
      expect(mine).toBe(theirs);
      expect(() => mine?.tags.push('changed')).toThrow(TypeError);
      expect(Object.isFrozen(mine)).toBe(true);
    }
    made?.tags.push('changed');
    expect(miss[0]?.tags).toEqual(['new']);
  });

  test.each(['none', 'decode', 'freeze'] as const)(
    "'%s' is the same for followers, and for outcomes",
    async (isolate) => {
      for (const ttl of ['60s', 0] as const) {
        const { clock, processes } = setUp({ processes: 2 });
        const load = () => clock.sleep(10).then((): Product => ({ name: 'chair', tags: ['new'] }));
        const [, a, b] = [0, 1, 1].map((index) =>
          follow(processes[index]!.cache.getOrLoad('key', load, { ttl, isolate })),
        );
        await clock.advance(20);
        expect(a?.value).toEqual({ name: 'chair', tags: ['new'] });
        expect(a?.value === b?.value).toBe(isolate !== 'decode');
        expect(Object.isFrozen(a?.value?.tags)).toBe(isolate === 'freeze');
      }
    },
  );

  test.each(['decode', 'freeze'] as const)("'%s' holds for get", async (isolate) => {
    const { cache } = setUp({ defaults: { isolate } });
    await cache.set('key', { tags: [] }, '60s');
    const [mine, theirs] = await Promise.all([cache.get('key'), cache.get('key')]);
    expect(mine).toEqual({ tags: [] });
    expect(mine === theirs).toBe(isolate === 'freeze');
    expect(Object.isFrozen(mine)).toBe(isolate === 'freeze');
  });

  test('callers of one flight get each what it asked for', async () => {
    const { clock, cache } = setUp();
    const load = () => clock.sleep(10).then(() => ({ tags: ['new'] }));
    const calls = (['none', 'none', 'decode', 'freeze'] as const).map((isolate) =>
      follow(cache.getOrLoad('key', load, { ttl: '60s', isolate })),
    );
    await clock.advance(10);
    const [a, b, copy, frozen] = calls.map(({ value }) => value);
    expect(a).toBe(b);
    expect(copy).not.toBe(a);
    expect([a, copy, frozen].map(Object.isFrozen)).toEqual([false, false, true]);
  });

  test('a value that the codec can not write has no copies: it is shared as it is', async () => {
    const { cache } = setUp();
    const made = { n: 1n };
    expect(await cache.getOrLoad('key', () => made, { ttl: '60s', isolate: 'decode' })).toBe(made);
    const bytes = { n: 1n, data: new Uint8Array(2), self: undefined as unknown };
    bytes.self = bytes;
    expect(await cache.getOrLoad('key', () => bytes, { ttl: '60s', isolate: 'freeze' })).toBe(bytes);
  });

  async function fourCallers(isolate: Isolation | undefined) {
    const { clock, cache } = setUp();
    let made: Product | undefined;
    const load = async () => {
      await clock.sleep(10);
      made = { name: 'chair', tags: ['new'] };
      return made;
    };
    const two = async () => {
      const calls = [1, 2].map(() => follow(cache.getOrLoad('key', load, { ttl: '60s', isolate })));
      await clock.advance(10);
      return calls.map(({ value }) => value);
    };
    return { miss: await two(), hit: await two(), made };
  }
});
