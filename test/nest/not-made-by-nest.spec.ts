/** Instances of decorated classes that Nest did not make, and those that it made in less usual ways. */
import { describe, expect, it } from '@jest/globals';
import { Inject, Injectable, type Provider } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import {
  bypassStampedeCache,
  CacheAside,
  CacheEvict,
  CacheNotInjectedError,
  CachePut,
  StampedeCacheModule,
  WithLock,
} from 'nestjs-stampede-cache';
import { startApp } from './apps.js';

abstract class Products {
  abstract find(id: string): Promise<string>;
}

@Injectable()
class CachedProducts extends Products {
  runs = 0;

  @CacheAside((id) => ['product', id], '60s')
  async find(id: string): Promise<string> {
    this.runs += 1;
    return id;
  }
  @CacheEvict({ keys: (id) => [['product', id]] })
  async update(id: string): Promise<string> {
    return id;
  }
  @CachePut((id) => ['product', id], '60s')
  async replace(id: string): Promise<string> {
    return id;
  }
  @WithLock((id) => ['product', id])
  async recount(id: string): Promise<string> {
    return id;
  }
}

async function start(...providers: Provider[]) {
  return startApp({ imports: [StampedeCacheModule.forTest()], providers });
}

async function runsOfTwoCalls(products: CachedProducts): Promise<number> {
  await products.find('1');
  await products.find('1');
  return products.runs;
}

describe('useFactory', () => {
  it('with new is told at the call what to do instead', async () => {
    const app = await start({ provide: Products, useFactory: () => new CachedProducts() });
    const products = app.get(Products) as CachedProducts;
    for (const method of ['find', 'update', 'replace', 'recount'] as const) {
      const called = products[method]('1');
      await expect(called).rejects.toThrow(CacheNotInjectedError);
      await expect(called).rejects.toThrow(
        /^CachedProducts\.\w+ has no cache:.*useFactory.*ModuleRef.*forTest\(\).*bypassStampedeCache/s,
      );
    }
  });

  it('with new and bypassStampedeCache is uncached', async () => {
    const app = await start({ provide: Products, useFactory: () => bypassStampedeCache(new CachedProducts()) });
    const products = app.get(Products) as CachedProducts;
    expect(await runsOfTwoCalls(products)).toBe(2);
    expect(await Promise.all([products.update('1'), products.replace('1'), products.recount('1')])).toEqual([
      '1',
      '1',
      '1',
    ]);
  });

  it('with ModuleRef.create is cached', async () => {
    const app = await start({
      provide: Products,
      inject: [ModuleRef],
      useFactory: (modules: ModuleRef) => modules.create(CachedProducts),
    });
    expect(await runsOfTwoCalls(app.get(Products) as CachedProducts)).toBe(1);
  });

  it('that is given an instance of Nest is cached', async () => {
    const app = await start(CachedProducts, {
      provide: Products,
      inject: [CachedProducts],
      useFactory: (products: CachedProducts) => products,
    });
    expect(await runsOfTwoCalls(app.get(Products) as CachedProducts)).toBe(1);
  });
});

describe('other ways of Nest', () => {
  it.each<[string, Provider[]]>([
    ['useClass under an abstract class', [{ provide: Products, useClass: CachedProducts }]],
    ['useExisting', [CachedProducts, { provide: Products, useExisting: CachedProducts }]],
  ])('%s is cached', async (_what, providers) => {
    const app = await start(...providers);
    expect(await runsOfTwoCalls(app.get(Products) as CachedProducts)).toBe(1);
  });

  it('ModuleRef.resolve gives transient instances that are cached', async () => {
    @Injectable()
    class Made {
      constructor(@Inject(ModuleRef) readonly modules: ModuleRef) {}
    }
    const app = await start(Made, { provide: CachedProducts, useClass: CachedProducts, scope: 2 });
    const { modules } = app.get(Made);
    const [one, other] = await Promise.all([modules.resolve(CachedProducts), modules.resolve(CachedProducts)]);
    expect(one).not.toBe(other);
    expect((await runsOfTwoCalls(one)) + (await runsOfTwoCalls(other))).toBe(1);
  });

  it('a class without @Injectable is cached', async () => {
    class Plain {
      runs = 0;
      @CacheAside(() => 'key', '60s')
      async find(): Promise<string> {
        this.runs += 1;
        return 'value';
      }
    }
    const plain = (await start(Plain)).get(Plain);
    await plain.find();
    await plain.find();
    expect(plain.runs).toBe(1);
  });
});
