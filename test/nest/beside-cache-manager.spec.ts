/** What docs/migration-from-cache-manager.md says of @nestjs/cache-manager, and that both live in one application. */
import { describe, expect, it } from '@jest/globals';
import { CACHE_MANAGER, CacheInterceptor, CacheModule } from '@nestjs/cache-manager';
import { Controller, Get, Headers, Inject, Injectable, UseInterceptors } from '@nestjs/common';
import { type Cache, createCache } from 'cache-manager';
import { Keyv } from 'keyv';
import { CacheAside, MemoryServer, MemoryStore, StampedeCache, StampedeCacheModule } from 'nestjs-stampede-cache';
import { listen, moment, startApp } from './apps.js';

/** Two caches of cache-manager on one store, as two processes have. */
function twoManagers(): [Cache, Cache] {
  const store = new Map();
  const cache = () => createCache({ stores: [new Keyv({ store })] });
  return [cache(), cache()];
}

/** Two of ours. */
async function twoOfOurs(): Promise<StampedeCache[]> {
  const server = new MemoryServer();
  const start = () => startApp({ imports: [StampedeCacheModule.forTest({ store: new MemoryStore({ server }) })] });
  return (await Promise.all([start(), start()])).map((app) => app.get(StampedeCache));
}

/** A loader that counts its runs; each takes until `whenever` is over. */
function counted<T>(value: T, whenever: () => Promise<unknown> = () => moment(undefined)) {
  const load = async () => {
    load.runs += 1;
    await whenever();
    return value;
  };
  load.runs = 0;
  return load;
}

/** Something that the test lets happen. */
class Gate {
  open: () => void = () => {};
  readonly opened = new Promise<void>((resolve) => {
    this.open = resolve;
  });
}

describe('the same, with each', () => {
  it('a crowd in two processes: one load in each, and one in all', async () => {
    const theirs = counted('value');
    await Promise.all(
      twoManagers().flatMap((cache) => Array.from({ length: 10 }, () => cache.wrap('key', theirs, 60_000))),
    );
    expect(theirs.runs).toBe(2);
    const ours = counted('value');
    const caches = await twoOfOurs();
    await Promise.all(
      caches.flatMap((cache) => Array.from({ length: 10 }, () => cache.getOrLoad('key', ours, 60_000))),
    );
    expect(ours.runs).toBe(1);
  });

  it('an eviction during a load: the old value is stored after it, and is not', async () => {
    const [manager] = twoManagers();
    const theirs = { begun: new Gate(), done: new Gate() };
    const slowly = ({ begun, done }: typeof theirs) =>
      counted('old', () => {
        begun.open();
        return done.opened;
      });
    const wrapping = manager.wrap('key', slowly(theirs), 60_000);
    await theirs.begun.opened;
    await manager.del('key');
    theirs.done.open();
    await wrapping;
    expect(await manager.get('key')).toBe('old');
    const [cache] = await twoOfOurs();
    const ours = { begun: new Gate(), done: new Gate() };
    const loading = cache!.getOrLoad('key', slowly(ours), 60_000);
    await ours.begun.opened;
    await cache!.evict('key');
    ours.done.open();
    await loading;
    expect(await cache!.get('key')).toBeUndefined();
  });

  it('a loader that returns undefined: loaded again, and stored', async () => {
    const [manager] = twoManagers();
    const theirs = counted(undefined);
    for (let call = 0; call < 2; call += 1) await manager.wrap('key', theirs, 60_000);
    expect(theirs.runs).toBe(2);
    const [cache] = await twoOfOurs();
    const ours = counted(undefined);
    for (let call = 0; call < 2; call += 1) await cache!.getOrLoad('key', ours, 60_000);
    expect(ours.runs).toBe(1);
  });
});

const allThere = new Gate();

@Controller()
@UseInterceptors(CacheInterceptor)
class Pages {
  runs = 0;
  @Get('me')
  async me(@Headers('authorization') user: string): Promise<string> {
    return user;
  }
  @Get('page')
  async page(): Promise<number> {
    this.runs += 1;
    if (this.runs === 3) allThere.open();
    await allThere.opened;
    return this.runs;
  }
}

describe('its CacheInterceptor', () => {
  it('answers by the URL alone, one load for each request of a crowd', async () => {
    const { app, url } = await listen({ imports: [CacheModule.register({ ttl: 60_000 })], controllers: [Pages] });
    const me = async (user: string) => (await fetch(`${url}/me`, { headers: { authorization: user } })).text();
    expect(await me('alice')).toBe('alice');
    expect(await me('bob')).toBe('alice');
    await Promise.all([1, 2, 3].map(() => fetch(`${url}/page`)));
    expect(app.get(Pages).runs).toBe(3);
    await fetch(`${url}/page?a=1&b=2`);
    await fetch(`${url}/page?b=2&a=1`);
    expect(app.get(Pages).runs).toBe(5);
  });
});

describe('both in one application', () => {
  @Injectable()
  class Products {
    runs = 0;
    constructor(@Inject(CACHE_MANAGER) readonly manager: Cache) {}
    old(id: string): Promise<string> {
      return this.manager.wrap(`product:${id}`, async () => `old ${id}`, 60_000);
    }
    @CacheAside((id) => ['product', id], '60s')
    async find(id: string): Promise<string> {
      this.runs += 1;
      return `new ${id}`;
    }
  }

  it('never meet', async () => {
    const app = await startApp({
      imports: [CacheModule.register({ isGlobal: true }), StampedeCacheModule.forTest()],
      providers: [Products],
    });
    const products = app.get(Products);
    expect([await products.old('1'), await products.find('1'), await products.find('1')]).toEqual([
      'old 1',
      'new 1',
      'new 1',
    ]);
    expect(products.runs).toBe(1);
    expect(await app.get(StampedeCache).get('product:1')).toBe('new 1');
    expect(await products.manager.get('product:1')).toBe('old 1');
  });
});
