import { describe, expect, it } from '@jest/globals';
import { Controller, Get, Injectable, Module, type ModuleMetadata, Scope, type Type } from '@nestjs/common';
import { CacheAside, CachePut, CacheResponse, StampedeCache, StampedeCacheModule } from 'nestjs-stampede-cache';
import { createTestKit, expectLoads } from 'nestjs-stampede-cache/testing';
import { bootError, listen, startApp } from './apps.js';

declare module 'nestjs-stampede-cache' {
  interface CacheProfiles {
    products: true;
    sessions: true;
    pages: true;
    odd: true;
  }
}

const profiles = { products: { ttl: '60s' }, sessions: { ttl: '5s' } } as const;

@Injectable()
class Products {
  @CacheAside((id) => ['product', id], 'products')
  async find(id: string): Promise<string> {
    return id;
  }

  @CacheAside((id) => ['short', id], { profile: 'products', ttl: '1s' })
  async findForAMoment(id: string): Promise<string> {
    return id;
  }

  @CachePut((id) => ['product', id], 'products')
  async replace(id: string): Promise<string> {
    return `new ${id}`;
  }
}

describe('profiles of a decorator', () => {
  it('are those of its cache', async () => {
    const kit = createTestKit({ profiles });
    const app = await startApp({ imports: [kit.module], providers: [Products] });
    const [products, cache] = [app.get(Products), app.get(StampedeCache)];
    const find = () => Promise.all([products.find('1'), products.findForAMoment('1')]);
    await expectLoads(cache, 2, find);
    await kit.clock.advance('1s');
    await expectLoads(cache, { 'short:1': 1 }, find);
    await kit.clock.advance('59s');
    await expectLoads(cache, { 'short:1': 1, 'product:1': 1 }, find);
    await kit.clock.advance('59s');
    await products.replace('1');
    await kit.clock.advance('59s');
    expect(await products.find('1')).toBe('new 1');
  });

  it('are those of the named cache where it says so', async () => {
    @Injectable()
    class Both {
      @CacheAside(() => 'key', { profile: 'products', cache: 'other' })
      async find(): Promise<string> {
        return 'value';
      }
    }
    const other = StampedeCacheModule.forTest({ name: 'other', profiles: { products: { ttl: '60s' } } });
    const here = StampedeCacheModule.forTest({ profiles: { sessions: { ttl: '60s' } } });
    expect(await (await startApp({ imports: [here, other], providers: [Both] })).get(Both).find()).toBe('value');
    const error = await bootError({
      imports: [StampedeCacheModule.forTest({ profiles }), StampedeCacheModule.forTest({ name: 'other' })],
      providers: [Both],
    });
    expect(error.message).toMatch(/^The profile of Both\.find must be one of the cache's profiles, and it has none/);
  });
});

describe('profiles of @CacheResponse', () => {
  let runs = 0;
  @Controller()
  @CacheResponse('pages')
  class Pages {
    @Get('default')
    async byDefault(): Promise<object> {
      return { run: ++runs };
    }
    @Get('short')
    @CacheResponse({ profile: 'pages', ttl: '1s', query: ['page'] })
    async short(): Promise<object> {
      return { run: ++runs };
    }
    @Get('never')
    @CacheResponse({ profile: 'pages', cacheIf: () => false })
    async never(): Promise<object> {
      return { run: ++runs };
    }
    @Get('odd')
    @CacheResponse('odd')
    async odd(): Promise<object> {
      return { run: ++runs };
    }
  }

  it('say how responses are kept, of what is in the body; what the route says goes before', async () => {
    const of = (body: unknown) => (body as { run: number }).run;
    const kit = createTestKit({
      defaults: { isolate: 'none' },
      profiles: {
        pages: { ttl: '60s', staleWhileRevalidate: '10s', isolate: 'none' },
        odd: { ttl: (body) => `${of(body)}s`, cacheIf: (body) => of(body) % 2 === 1 },
      },
    });
    const { url } = await listen({ imports: [kit.module], controllers: [Pages] });
    const get = async (path: string) => {
      const response = await fetch(`${url}/${path}`);
      const { headers } = response;
      return [
        ((await response.json()) as { run: number }).run,
        headers.get('cache-status'),
        headers.get('cache-control'),
      ];
    };
    const validity = 'public, max-age=60, stale-while-revalidate=10';
    expect(await get('default')).toEqual([1, 'stampede; fwd=miss; stored; ttl=60', validity]);
    await kit.clock.advance('20s');
    expect(await get('default')).toEqual([1, 'stampede; hit; ttl=40', validity]);
    expect(await get('short?page=1')).toEqual([2, 'stampede; fwd=miss; stored; ttl=1', validity.replace('60', '1')]);
    expect(await get('short?page=1&x=2')).toEqual([2, 'stampede; hit; ttl=1', validity.replace('60', '1')]);
    expect(await get('never')).toEqual([3, 'stampede; fwd=miss', null]);
    expect(await get('never')).toEqual([4, 'stampede; fwd=miss', null]);
    expect(await get('odd')).toEqual([5, 'stampede; fwd=miss; stored; ttl=5', 'public, max-age=5']);
    expect(await get('odd')).toEqual([5, 'stampede; hit; ttl=5', 'public, max-age=5']);
    await kit.clock.advance('6s');
    expect(await get('odd')).toEqual([6, 'stampede; fwd=miss', null]);
  });
});

describe('a profile that there is not', () => {
  function userOf(scope: Scope): Type<object> {
    @Injectable({ scope })
    class Service {
      @CacheAside(() => 'key', 'prodcts' as never)
      async find(): Promise<string> {
        return 'value';
      }
    }
    return Service;
  }
  @Controller()
  class Route {
    @CachePut(() => 'key', { profile: 'prodcts' as never })
    @Get()
    async find(): Promise<string> {
      return 'value';
    }
  }
  @Injectable()
  class Several {
    @CacheAside(() => 'wrong', 'prodcts' as never)
    async wrong(): Promise<void> {}
    @CacheAside(() => 'right', 'products')
    async right(): Promise<void> {}
  }
  @Controller('page')
  class Page {
    @CacheResponse({ profile: 'prodcts' as never, vary: ['accept-language'] })
    @Get()
    async page(): Promise<string> {
      return 'value';
    }
  }
  @CacheResponse('prodcts' as never)
  @Controller('pages')
  class Pages {
    @Get()
    async page(): Promise<string> {
      return 'value';
    }
  }
  class InheritingWithItsOwn extends Several {
    @CacheAside(() => 'sub', 'sessions')
    async another(): Promise<void> {}
  }
  class Inheriting extends userOf(Scope.DEFAULT) {}
  const imports = () => [StampedeCacheModule.forTest({ profiles })];

  it.each<[string, () => ModuleMetadata, string]>([
    ['a provider', () => ({ imports: imports(), providers: [userOf(Scope.DEFAULT)] }), 'Service.find'],
    ['a request-scoped one', () => ({ imports: imports(), providers: [userOf(Scope.REQUEST)] }), 'Service.find'],
    ['a transient one', () => ({ imports: imports(), providers: [userOf(Scope.TRANSIENT)] }), 'Service.find'],
    ['one of several methods', () => ({ imports: imports(), providers: [Several] }), 'Several.wrong'],
    ['inherited', () => ({ imports: imports(), providers: [InheritingWithItsOwn] }), 'Several.wrong'],
    ['a subclass', () => ({ imports: imports(), providers: [Inheriting] }), 'Service.find'],
    ['a controller', () => ({ imports: imports(), controllers: [Route] }), 'Route.find'],
    ['a response', () => ({ imports: imports(), controllers: [Page] }), 'Page.page'],
    ['all responses of a controller', () => ({ imports: imports(), controllers: [Pages] }), 'Pages'],
    [
      'a provider under another token',
      () => ({ imports: imports(), providers: [{ provide: 'service', useClass: userOf(Scope.DEFAULT) }] }),
      'Service.find',
    ],
    [
      'forRootAsync',
      () => ({
        imports: [StampedeCacheModule.forRootAsync({ useFactory: () => ({ profiles, store: 'memory' }) })],
        providers: [userOf(Scope.REQUEST)],
      }),
      'Service.find',
    ],
  ])('is an error at boot that names method and profiles: %s', async (_what, metadata, where) => {
    const error = await bootError(metadata());
    expect(error).toMatchObject({ name: 'InvalidOptionError', option: `The profile of ${where}` });
    expect(error.message).toMatch(/one of the cache's profiles, which are 'products', 'sessions'.* it is 'prodcts'$/);
  });

  it('is none when the cache that a module imports for itself has it', async () => {
    @Module({
      imports: [StampedeCacheModule.forTest({ isGlobal: false, profiles: { products: { ttl: '60s' } } })],
      providers: [Products],
    })
    class Local {}
    await startApp({ imports: [StampedeCacheModule.forTest(), Local] });
    expect(
      (await bootError({ imports: [StampedeCacheModule.forTest(), Local], providers: [Products] })).message,
    ).toMatch(/^The profile of Products\./);
  });
});

describe('what a decorator says of a profile', () => {
  it.each<[string, unknown]>([
    ['profile', { profile: 7 }],
    ['profile', { profile: '60s' }],
    ['ttl', { profile: 'products', ttl: '60 secons' }],
    ['wait', { profile: 'products', wait: -1 }],
    ['tll', { profile: 'products', tll: 1 }],
  ])('is checked at decoration: %s of %p', (option, options) => {
    expect(() => CacheAside(() => 'key', options as never)).toThrow(expect.objectContaining({ option }));
    expect(() => CacheResponse(options as never)).toThrow(expect.objectContaining({ option }));
  });
});
