import { describe, expect, it } from '@jest/globals';
import { Controller, Get, Inject, Injectable, Param, Scope, SetMetadata, type Type } from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import {
  bypassStampedeCache,
  CacheAside,
  CacheAsideMany,
  CacheEvict,
  CacheNotInjectedError,
  composeKey,
  InvalidKeyError,
  InvalidLoadResultError,
  InvalidOptionError,
  StampedeCache,
  StampedeCacheModule,
} from 'nestjs-stampede-cache';
import { listen, moment, startApp } from './apps.js';

interface Product {
  readonly id: string;
  readonly version: number;
}

class NoSuchProduct extends Error {}

@Injectable()
class Products {
  /** The ids of each query. */
  readonly queries: unknown[][] = [];
  version = 1;

  @CacheAside((id) => ['product', id], '60s')
  async find(id: string): Promise<Product | undefined> {
    this.queries.push([id]);
    return { id, version: this.version };
  }

  @CacheAsideMany((id) => ['product', id], '60s')
  async findMany(ids: readonly string[]): Promise<(Product | undefined)[]> {
    this.queries.push([...ids]);
    return moment(ids.map((id) => (id === 'none' ? undefined : { id, version: this.version })));
  }

  @CacheAsideMany((id, locale) => (locale === 'draft' ? undefined : ['name', id, locale]), {
    ttl: (name) => (name === 'short' ? 0 : '60s'),
    returns: 'map',
  })
  @SetMetadata('kept', true)
  async names(ids: readonly number[], locale = 'en'): Promise<Map<number, string>> {
    this.queries.push([...ids]);
    return new Map(ids.filter((id) => id > 0).map((id) => [id, `${locale} ${id}`]));
  }

  @CacheAsideMany((id) => (id.startsWith('draft') ? undefined : ['checked', id]), { ttl: '60s', errors: 'return' })
  async checked(ids: string[]): Promise<(Product | NoSuchProduct)[]> {
    this.queries.push(ids);
    return ids.map((id) => (id.endsWith('none') ? new NoSuchProduct(id) : { id, version: this.version }));
  }

  @CacheAsideMany(function (this: Products, id) {
    return `${this.version}:${id}`;
  }, '60s')
  async versioned(ids: string[]): Promise<string[]> {
    if (ids.includes('bad')) throw new NoSuchProduct('bad');
    this.queries.push(ids);
    return ids.map((id) => `${id}${this.version}`);
  }

  /** Calls itself through the cache. */
  async names2(ids: string[]): Promise<number[]> {
    const found = await this.findMany(ids);
    return found.map((product) => product?.version ?? 0);
  }

  @CacheEvict((id) => ['product', id])
  async update(_id: string): Promise<void> {
    this.version += 1;
  }
}

async function setUp() {
  const app = await startApp({ imports: [StampedeCacheModule.forTest()], providers: [Products] });
  return { products: app.get(Products), cache: app.get(StampedeCache) };
}

describe('@CacheAsideMany', () => {
  it('runs the method with what is missing, once however many ask', async () => {
    const { products } = await setUp();
    const [one, two] = await Promise.all([products.findMany(['1', '2', 'none']), products.findMany(['2', '3', '2'])]);
    expect(one).toEqual([{ id: '1', version: 1 }, { id: '2', version: 1 }, undefined]);
    expect(two.map((product) => product?.id)).toEqual(['2', '3', '2']);
    expect(products.queries).toEqual([['1', '2', 'none'], ['3']]);
    expect(await products.findMany(['none', '3'])).toEqual([undefined, { id: '3', version: 1 }]);
    expect(await products.findMany([])).toEqual([]);
    expect(await products.names2(['1', 'none'])).toEqual([1, 0]);
    expect(products.queries).toHaveLength(2);
  });

  it('stores under the keys that @CacheAside reads and @CacheEvict evicts', async () => {
    const { products, cache } = await setUp();
    await products.findMany(['1', '2']);
    expect(await products.find('1')).toEqual({ id: '1', version: 1 });
    expect(await cache.get(composeKey(['product', '2']))).toEqual({ id: '2', version: 1 });
    await products.update('1');
    expect(await products.findMany(['1', '2'])).toEqual([
      { id: '1', version: 2 },
      { id: '2', version: 1 },
    ]);
    expect(products.queries).toEqual([['1', '2'], ['1']]);
  });

  it('gives a Map where the method does; what is not in it is remembered as such', async () => {
    const { products } = await setUp();
    const names = new Map([[1, 'en 1']]);
    expect(await products.names([1, -1])).toEqual(names);
    expect(await products.names([-1, 1])).toEqual(names);
    expect(await products.names([1], 'de')).toEqual(new Map([[1, 'de 1']]));
    expect(products.queries).toEqual([[1, -1], [1]]);
  });

  it('leaves ids without a key alone', async () => {
    const { products } = await setUp();
    for (let call = 0; call < 2; call += 1) {
      expect(await products.names([1, -1], 'draft')).toEqual(new Map([[1, 'draft 1']]));
      const checked = await products.checked(['draft 1', 'a', 'draft none', 'b']);
      expect(checked.map((each) => (each instanceof Error ? each : each.id))).toEqual([
        'draft 1',
        'a',
        new NoSuchProduct('draft none'),
        'b',
      ]);
    }
    const asked = products.queries.map((query) => query.join());
    expect(asked.sort()).toEqual(['1,-1', '1,-1', 'a,b', 'draft 1,draft none', 'draft 1,draft none']);
  });

  it('an error: of the method as it was thrown; of one id in its place, with errors: return', async () => {
    const { products, cache } = await setUp();
    await expect(products.versioned(['a', 'bad'])).rejects.toThrow(NoSuchProduct);
    const [a, none] = await products.checked(['a', 'none']);
    expect(a).toEqual({ id: 'a', version: 1 });
    expect(none).toBeInstanceOf(NoSuchProduct);
    expect([await cache.has('checked:a'), await cache.has('checked:none')]).toEqual([true, false]);
  });

  it('calls the key function with the instance as this', async () => {
    const { products } = await setUp();
    expect(await products.versioned(['a'])).toEqual(['a1']);
    products.version = 2;
    expect(await products.versioned(['a'])).toEqual(['a2']);
  });

  it('refuses what it can not match with the ids', async () => {
    @Injectable()
    class Wrong {
      @CacheAsideMany((id) => ['a', id], '60s')
      async fewer(ids: string[]): Promise<string[]> {
        return ids.slice(1);
      }
      @CacheAsideMany((id) => ['b', id], '60s')
      async map(ids: string[]): Promise<string[]> {
        return new Map(ids.map((id) => [id, id])) as unknown as string[];
      }
      @CacheAsideMany((id) => ['c', id], { ttl: '60s', returns: 'map' })
      async list(ids: string[]): Promise<Map<string, string>> {
        return ids as unknown as Map<string, string>;
      }
      @CacheAsideMany((id) => ['d', id], { ttl: '60s', returns: 'map' })
      async byNumber(ids: string[]): Promise<Map<string, string>> {
        return new Map(ids.map((id) => [Number(id) as unknown as string, id]));
      }
      @CacheAsideMany(() => '', '60s')
      async noKey(ids: string[]): Promise<string[]> {
        return ids;
      }
    }
    const app = await startApp({ imports: [StampedeCacheModule.forTest()], providers: [Wrong] });
    const wrong = app.get(Wrong);
    await expect(wrong.fewer(['1', '2'])).rejects.toThrow(/Wrong\.fewer returned 1 values for 2 ids/);
    await expect(wrong.map(['1'])).rejects.toThrow(/Wrong\.map returned a Map\. Say so in the options/);
    await expect(wrong.list(['1'])).rejects.toThrow(/Wrong\.list must return a Map, as its @CacheAsideMany says/);
    await expect(wrong.byNumber(['1'])).rejects.toThrow(InvalidLoadResultError);
    await expect(wrong.noKey(['1'])).rejects.toThrow(InvalidKeyError);
    await expect(wrong.fewer('12' as unknown as string[])).rejects.toThrow(
      /The first argument of Wrong\.fewer must be an array of ids/,
    );
  });

  it.each([
    ['a ttl', '60 secs', /ttl/],
    ['errors', { ttl: '60s', errors: 'ignore' }, /errors must be 'throw' or 'return'/],
    ['returns', { ttl: '60s', returns: 'set' }, /returns must be 'array' or 'map'/],
    ['a name', { ttl: '60s', error: 'throw' }, /error must be spelled as one of/],
  ])('refuses %s that is none where it is written', (_, options, message) => {
    const decorate = () => CacheAsideMany((id) => ['a', id as string], options as never);
    expect(decorate).toThrow(InvalidOptionError);
    expect(decorate).toThrow(message);
    expect(() => CacheAsideMany('key' as never, '60s' as never)).toThrow(
      /The key of @CacheAsideMany must be a function/,
    );
  });

  it('N6: an instance that Nest did not make says so, or is bypassed', async () => {
    await expect(new Products().findMany(['1'])).rejects.toThrow(CacheNotInjectedError);
    const products = bypassStampedeCache(new Products());
    expect(await products.findMany(['1', '1'])).toHaveLength(2);
    expect(products.queries).toEqual([['1', '1']]);
  });

  it('N1: keeps name, length and metadata', () => {
    expect([Products.prototype.findMany.name, Products.prototype.findMany.length]).toEqual(['findMany', 1]);
    expect(Products.prototype.names.length).toBe(1);
    expect(Reflect.getMetadata('kept', Products.prototype.names)).toBe(true);
  });
});

describe('N3: scopes', () => {
  let made = 0;
  let queries: string[][] = [];

  abstract class Numbered {
    readonly number = ++made;

    @CacheAsideMany((id) => ['numbered', id], '60s')
    async findMany(ids: string[]): Promise<{ id: string; by: number }[]> {
      queries.push(ids);
      return ids.map((id) => ({ id, by: this.number }));
    }
  }

  @Injectable({ scope: Scope.REQUEST })
  class RequestScoped extends Numbered {
    constructor(@Inject(REQUEST) readonly request: { headers: Record<string, string> }) {
      super();
    }
  }
  @Injectable({ scope: Scope.TRANSIENT })
  class Transient extends Numbered {}
  @Injectable()
  class Singleton extends Numbered {}

  it.each<[string, Type<Numbered>]>([
    ['request-scoped', RequestScoped],
    ['transient', Transient],
    ['singleton', Singleton],
  ])('%s instances share what one has loaded', async (_name, service) => {
    @Controller()
    class Numbers {
      constructor(@Inject(service) readonly numbered: Numbered) {}
      @Get(':ids')
      find(@Param('ids') ids: string) {
        return this.numbered.findMany(ids.split(','));
      }
    }
    queries = [];
    const imports = [StampedeCacheModule.forTest()];
    const { url } = await listen({ imports, controllers: [Numbers], providers: [service] });
    const ask = async (ids: string) => (await (await fetch(`${url}/${ids}`)).json()) as { id: string; by: number }[];
    const [one] = await ask('1,2');
    expect(await ask('2,1')).toEqual([{ id: '2', by: one?.by }, one]);
    await ask('1,3');
    expect(queries).toEqual([['1', '2'], ['3']]);
  });
});

describe('N3: inheritance', () => {
  class Animals {
    readonly calls: string[] = [];
    @CacheAsideMany((id) => ['animal', id], '60s')
    async findMany(ids: string[]): Promise<string[]> {
      this.calls.push(`base ${ids}`);
      return ids.map((id) => `animal ${id}`);
    }
  }
  @Injectable()
  class WithTheSameKeys extends Animals {
    @CacheAsideMany((id) => ['animal', id], '60s')
    override async findMany(ids: string[]): Promise<string[]> {
      this.calls.push(`sub ${ids}`);
      return (await super.findMany(ids)).map((found) => `[${found}]`);
    }
  }
  @Injectable()
  class WithOwnKeys extends Animals {
    @CacheAsideMany((id) => ['cat', id], '60s')
    override async findMany(ids: string[]): Promise<string[]> {
      this.calls.push(`sub ${ids}`);
      return (await super.findMany(ids)).map((found) => `(${found})`);
    }
  }

  it.each<[string, Type<Animals>, string[]]>([
    ['the same keys does not wait for itself', WithTheSameKeys, ['[animal 1]', '[animal 2]']],
    ['keys of its own has both', WithOwnKeys, ['(animal 1)', '(animal 2)']],
  ])('an override with %s', async (_, service, found) => {
    const app = await startApp({ imports: [StampedeCacheModule.forTest()], providers: [service] });
    const animals = app.get(service);
    expect(await animals.findMany(['1', '2'])).toEqual(found);
    expect(await animals.findMany(['2', '1'])).toEqual([...found].reverse());
    expect(animals.calls).toEqual(['sub 1,2', 'base 1,2']);
  });
});
