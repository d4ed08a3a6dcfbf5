/** Options at calls that no compiler has checked, and those that have a name. */
import { describe, expect, it } from '@jest/globals';
import { CacheAside, type CacheProfile } from 'nestjs-stampede-cache';
import { createStampede } from '../../lib/core/create.js';
import type { CacheOptions } from '../../lib/core/options.js';
import { MemoryStore } from '../../lib/memory/memory-store.js';
import { setUp } from './setting.js';

declare module 'nestjs-stampede-cache' {
  interface CacheProfiles {
    products: true;
    sessions: true;
  }
}

const load = async () => 'value';

describe('a misspelled option', () => {
  it.each<[string, object]>([
    ['tll', { tll: '60s' }],
    ['stalewhilerevalidate', { ttl: 1, stalewhilerevalidate: '5m' }],
    ['cache', { ttl: 1, cache: 'sessions' }],
    ['password', Object.create({ ttl: 1, password: 'secret' })],
  ])('of getOrLoad and set is an error that names it: %s', async (option, options) => {
    const { cache } = setUp();
    const error = { name: 'InvalidOptionError', option };
    await expect(cache.getOrLoad('key', load, options as never)).rejects.toMatchObject(error);
    await expect(cache.set('key', 'value', options as never)).rejects.toMatchObject(error);
    await expect(cache.getOrLoad('key', load, options as never)).rejects.not.toThrow(/secret/);
  });

  it.each<[string, object]>([
    ['maxWait', { maxWait: '1s' }],
    ['ttl', { ttl: '1s' }],
  ])('of acquire, tryAcquire and withLock is an error that names it: %s', async (option, options) => {
    const { locks } = setUp();
    const error = { name: 'InvalidOptionError', option };
    await expect(locks.acquire('key', options as never)).rejects.toMatchObject(error);
    await expect(locks.tryAcquire('key', options as never)).rejects.toMatchObject(error);
    await expect(locks.withLock('key', options as never, load)).rejects.toMatchObject(error);
  });

  it('among the defaults is an error at boot', () => {
    const options = { defaults: { lese: '5s' } } as never;
    expect(() => createStampede({ store: new MemoryStore() }, options)).toThrow(/^lese must be spelled as one of/);
  });

  it('options of getOrLoad may be given to set, which shares its windows', async () => {
    const { cache, clock } = setUp();
    const options = { ttl: '1s', staleWhileRevalidate: '5m', cacheIf: () => true } as const;
    await cache.set('key', 'old', options);
    await clock.advance('2s');
    expect(await cache.getOrLoad('key', load, options)).toBe('old');
  });
});

describe('a profile', () => {
  const profiles = {
    products: { ttl: '60s', staleIfError: '1h', cacheIf: (value) => value !== 'never' },
    sessions: { ttl: (value) => String(value).length * 1_000 },
  } satisfies Record<string, CacheProfile>;

  it('gives a call its options', async () => {
    const { cache, events } = setUp({ profiles, defaults: { lease: '7s' } });
    expect(cache.resolve('products')).toMatchObject({
      ttl: 60_000,
      staleIfError: 3_600_000,
      lease: 7_000,
      wait: 30_000,
    });
    await cache.getOrLoad('1', load, 'products');
    await cache.getOrLoad('2', load, 'sessions');
    await cache.getOrLoad('3', async () => 'never', 'products');
    await cache.set('4', 'value', 'sessions');
    expect(events.filter(({ type }) => ['fill', 'not-stored', 'set'].includes(type))).toMatchObject([
      { type: 'fill', key: '1', ttl: 60_000 },
      { type: 'fill', key: '2', ttl: 5_000 },
      { type: 'not-stored', key: '3', reason: 'cacheIf' },
      { type: 'set', key: '4', ttl: 5_000 },
    ]);
  });

  it("takes the call's own options before its own, and its own before the cache's", () => {
    const { cache } = setUp({ profiles, defaults: { staleIfError: '2h', wait: '9s' } });
    expect(cache.resolve({ profile: 'products', ttl: '5s' })).toMatchObject({ ttl: 5_000, staleIfError: 3_600_000 });
    expect(cache.resolve({ profile: 'products', staleIfError: 0 })).toMatchObject({ ttl: 60_000, staleIfError: 0 });
    expect(cache.resolve({ profile: 'products', ttl: undefined } as never)).toMatchObject({ ttl: 60_000, wait: 9_000 });
    expect(cache.resolve({ profile: 'products' }).cacheIf).toBe(profiles.products.cacheIf);
    const cacheIf = () => true;
    expect(cache.resolve({ profile: 'products', cacheIf }).cacheIf).toBe(cacheIf);
  });

  it('that there is not is an error that names those there are', async () => {
    const { cache } = setUp({ profiles });
    for (const wrong of ['prodcts', { profile: 'prodcts' }, { profile: 7 }]) {
      const called = cache.getOrLoad('key', load, wrong as never);
      await expect(called).rejects.toMatchObject({ name: 'InvalidOptionError', option: 'profile' });
      await expect(called).rejects.toThrow(/one of the cache's profiles, which are 'products', 'sessions'/);
    }
    const without = setUp().cache.getOrLoad('key', load, 'products');
    await expect(without).rejects.toThrow(/and it has none: profiles: \{ products: \{ ttl: … \} \}/);
  });

  it.each<[string, unknown, RegExp]>([
    ['profiles', 'products', /^profiles must be an object/],
    ['profiles', { '60s': { ttl: 1 } }, /^profiles must be named by texts that begin with a letter/],
    ['profiles', { '': { ttl: 1 } }, /begin with a letter/],
    ['profiles.products', { products: '60s' }, /^profiles\.products must be an object/],
    ['profiles.products.ttl', { products: {} }, /^profiles\.products\.ttl must be a duration/],
    [
      'profiles.products.lease',
      { products: { ttl: 1, lease: 1 } },
      /^profiles\.products\.lease must be between 100 ms/,
    ],
    ['signal', { products: { ttl: 1, signal: AbortSignal.abort() } }, /it is no option of profiles\.products/],
  ])('that can not be one is an error at boot: %s, %p', (option, profiles, message) => {
    const create = () => createStampede({ store: new MemoryStore() }, { profiles } as CacheOptions);
    expect(create).toThrow(expect.objectContaining({ name: 'InvalidOptionError', option }));
    expect(create).toThrow(message);
  });

  it.each([['60 secons'], ['1500'], ['-5s'], ['']])('is never meant by what is nearly a duration: %p', async (ttl) => {
    const { cache } = setUp({ profiles });
    await expect(cache.getOrLoad('key', load, ttl as never)).rejects.toMatchObject({ option: 'ttl' });
    expect(() => CacheAside(() => 'key', ttl as never)).toThrow(expect.objectContaining({ option: 'ttl' }));
  });
});
