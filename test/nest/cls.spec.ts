/** nestjs-cls: a tenant that only the context knows. */
import { describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { ClsModule, ClsService } from 'nestjs-cls';
import { CacheAside, StampedeCache } from 'nestjs-stampede-cache';
import { createTestKit, expectLoads } from 'nestjs-stampede-cache/testing';
import { startApp } from './apps.js';

interface Context {
  tenant: string;
  [key: symbol]: unknown;
}

@Injectable()
class Products {
  readonly seen: (string | undefined)[] = [];
  constructor(readonly cls: ClsService<Context>) {}

  @CacheAside(
    function (this: Products, id) {
      return ['product', this.cls.get('tenant'), id];
    },
    { ttl: '60s', staleWhileRevalidate: '1h' },
  )
  async find(id: string): Promise<string> {
    return this.load(id);
  }

  @CacheAside((tenant, id) => ['product', tenant, id], {
    ttl: '60s',
    staleWhileRevalidate: '1h',
    refreshContext: 'caller',
  })
  async findOf(_tenant: string, id: string): Promise<string> {
    return this.load(id);
  }

  private async load(id: string): Promise<string> {
    const tenant = this.cls.isActive() ? this.cls.get('tenant') : undefined;
    this.seen.push(tenant);
    return `${tenant}'s ${id}`;
  }
}

async function start() {
  const kit = createTestKit();
  const app = await startApp({ imports: [kit.module, ClsModule.forRoot()], providers: [Products] });
  const cls = app.get<ClsService<Context>>(ClsService);
  const as = <T>(tenant: string, run: () => Promise<T>) =>
    cls.run(() => {
      cls.set('tenant', tenant);
      return run();
    });
  return { kit, products: app.get(Products), cache: app.get(StampedeCache), as };
}

describe('nestjs-cls', () => {
  it('a key function that asks the context keeps tenants apart', async () => {
    const { products, cache, as } = await start();
    await expectLoads(cache, { 'product:a:1': 1, 'product:b:1': 1 }, async () => {
      const calls = ['a', 'b', 'a', 'b', 'a'].map((tenant) => as(tenant, () => products.find('1')));
      expect(await Promise.all(calls)).toEqual(["a's 1", "b's 1", "a's 1", "b's 1", "a's 1"]);
    });
  });

  it('a load runs in the context of one of the callers that wait for it', async () => {
    const { products, as } = await start();
    await as('a', () => products.findOf('a', '1'));
    expect(products.seen).toEqual(['a']);
  });

  it('a load in the background runs in no context, or with refreshContext in that of the caller', async () => {
    const { kit, products, as } = await start();
    await as('a', () => products.find('1'));
    await as('a', () => products.findOf('a', '2'));
    await kit.clock.advance('2m');
    await as('a', () => products.find('1'));
    await as('a', () => products.findOf('a', '2'));
    await kit.clock.advance(0);
    expect(products.seen).toEqual(['a', 'a', undefined, 'a']);
  });

  it('the context of a caller is its own again after the call', async () => {
    const { products, as } = await start();
    const after = await Promise.all(
      ['a', 'b'].map((tenant) =>
        as(tenant, async () => {
          await products.findOf('shared', '1');
          return products.cls.get('tenant');
        }),
      ),
    );
    expect(after).toEqual(['a', 'b']);
  });
});
