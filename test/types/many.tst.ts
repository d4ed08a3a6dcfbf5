import { CacheAsideMany, type StampedeCache } from 'nestjs-stampede-cache';
import { describe, expect, test } from 'tstyche';

interface Product {
  readonly id: string;
  readonly hot: boolean;
}

declare const cache: StampedeCache;
declare function products(keys: readonly string[]): Promise<Product[]>;
declare function maybe(keys: readonly string[]): Promise<(Product | undefined)[]>;
declare function someFail(keys: readonly string[]): Promise<(Product | Error)[]>;
declare function byKey(keys: readonly string[]): Promise<Map<string, Product>>;

describe('getOrLoadMany', () => {
  test('gives what the loader gives', () => {
    expect(cache.getOrLoadMany(['a'], products, '60s')).type.toBe<Promise<Product[]>>();
    expect(cache.getOrLoadMany(['a'], maybe, '60s')).type.toBe<Promise<(Product | undefined)[]>>();
    expect(cache.getOrLoadMany(['a'], (keys) => keys.map((key) => key.length), '60s')).type.toBe<Promise<number[]>>();
    expect(cache.getOrLoadMany<Product>(['a'], async () => [], '60s')).type.toBe<Promise<Product[]>>();
  });

  test('a Map may have nothing for a key', () => {
    expect(cache.getOrLoadMany(['a'], byKey, '60s')).type.toBe<Promise<(Product | undefined)[]>>();
  });

  test('errors are thrown, or stand in the place of values if the options say so', () => {
    expect(cache.getOrLoadMany(['a'], someFail, '60s')).type.toBe<Promise<Product[]>>();
    expect(cache.getOrLoadMany(['a'], someFail, { ttl: '60s', errors: 'throw' })).type.toBe<Promise<Product[]>>();
    expect(cache.getOrLoadMany(['a'], someFail, { ttl: '60s', errors: 'return' })).type.toBe<
      Promise<(Product | Error)[]>
    >();
    expect(cache.getOrLoadMany(['a'], byKey, { ttl: '60s', errors: 'return' })).type.toBe<
      Promise<(Product | Error | undefined)[]>
    >();
    expect(cache.getOrLoadMany).type.not.toBeCallableWith(['a'], products, { ttl: '60s', errors: 'ignore' });
  });

  test('functions of the value see one value', () => {
    cache.getOrLoadMany(['a'], products, (product) => (product.hot ? '5m' : '10s'));
    cache.getOrLoadMany(['a'], byKey, { ttl: '60s', cacheIf: (product) => product !== undefined });
    expect(cache.getOrLoadMany).type.not.toBeCallableWith(['a'], byKey, (product: Product) => (product.hot ? 1 : 2));
  });

  test('refuses what is no list, no loader, no ttl', () => {
    expect(cache.getOrLoadMany).type.not.toBeCallableWith('a', products, '60s');
    expect(cache.getOrLoadMany).type.not.toBeCallableWith(['a'], async () => 1, '60s');
    expect(cache.getOrLoadMany).type.not.toBeCallableWith(['a'], products, '60 secs');
    expect(cache.getOrLoadMany).type.not.toBeCallableWith(['a'], products);
  });
});

describe('@CacheAsideMany', () => {
  test("the key function gets one id and the method's other arguments, without being written again", () => {
    class Products {
      readonly region = 'eu';

      @CacheAsideMany((id) => ['product', id.toUpperCase()], '60s')
      async findMany(ids: readonly string[]): Promise<(Product | undefined)[]> {
        return ids.map((id) => ({ id, hot: true }));
      }
      @CacheAsideMany((id, locale) => ['product', id.toFixed(), locale?.toLowerCase()], { ttl: '60s' })
      async findIn(ids: number[], locale?: string): Promise<readonly Product[]> {
        return ids.map((id) => ({ id: `${id}${locale}`, hot: true }));
      }
      @CacheAsideMany((id) => ['name', id], { ttl: (name) => (name === undefined ? 0 : name.length), returns: 'map' })
      async names(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
        return new Map(ids.map((id) => [id, id]));
      }
      @CacheAsideMany((id) => ['checked', id], { ttl: ({ hot }) => (hot ? '5m' : '10s'), errors: 'return' })
      async checked(ids: readonly string[]): Promise<(Product | TypeError)[]> {
        return ids.map((id) => ({ id, hot: true }));
      }
      @CacheAsideMany(function (this: Products, { id }) {
        return [this.region, id];
      }, '60s')
      protected async objects(products: readonly Product[]): Promise<string[]> {
        return products.map(({ id }) => id);
      }
    }
    expect(new Products().findMany(['1'])).type.toBe<Promise<(Product | undefined)[]>>();
  });

  test('a method that gives a Map, or errors, has options that say so', () => {
    class Wrong {
      // @ts-expect-error Argument of type 'string' is not assignable
      @CacheAsideMany((id: string) => ['a', id], '60s')
      async map(ids: readonly string[]): Promise<Map<string, string>> {
        return new Map(ids.map((id) => [id, id]));
      }
      // @ts-expect-error not assignable
      @CacheAsideMany((id: string) => ['a', id], { ttl: '60s', returns: 'array' })
      async mapAsArray(ids: readonly string[]): Promise<Map<string, string>> {
        return new Map(ids.map((id) => [id, id]));
      }
      // @ts-expect-error not assignable
      @CacheAsideMany((id: string) => ['a', id], { ttl: '60s', returns: 'map' })
      async arrayAsMap(ids: readonly string[]): Promise<string[]> {
        return [...ids];
      }
      // @ts-expect-error not assignable
      @CacheAsideMany((id: string) => ['a', id], { ttl: '60s' })
      async errors(ids: readonly string[]): Promise<(string | Error)[]> {
        return [...ids];
      }
      // @ts-expect-error not assignable
      @CacheAsideMany((id: string) => ['a', id], { ttl: '60s', errors: 'return' })
      async noErrors(ids: readonly string[]): Promise<string[]> {
        return [...ids];
      }
    }
    expect<Wrong>().type.toBeAssignableTo<object>();
  });

  test('what is no method for many does not compile', () => {
    class Wrong {
      // @ts-expect-error is not assignable to type 'ManyMethod'
      @CacheAsideMany((id: string) => ['a', id], '60s' as never)
      async one(id: string): Promise<string[]> {
        return [id];
      }
      // @ts-expect-error is not assignable to type 'ManyMethod'
      @CacheAsideMany((id: string) => ['a', id], '60s' as never)
      async noList(ids: readonly string[]): Promise<number> {
        return ids.length;
      }
      // @ts-expect-error is not assignable to type 'ManyMethod'
      @CacheAsideMany((id: string) => ['a', id], '60s' as never)
      sync(ids: readonly string[]): string[] {
        return [...ids];
      }
      // @ts-expect-error is not assignable to parameter of type 'IdKeyFunction<
      @CacheAsideMany((id: number) => ['a', id], '60s')
      async otherId(ids: readonly string[]): Promise<string[]> {
        return [...ids];
      }
      // @ts-expect-error 'signal' does not exist in type
      @CacheAsideMany((id: string) => ['a', id], { ttl: '60s', signal: new AbortController().signal })
      async withSignal(ids: readonly string[]): Promise<string[]> {
        return [...ids];
      }
    }
    expect<Wrong>().type.toBeAssignableTo<object>();
  });
});
