import {
  CacheAside,
  CacheEvict,
  CachePut,
  type DefinedKey,
  defineKey,
  type StampedeCache,
  WithLock,
} from 'nestjs-stampede-cache';
import { describe, expect, test } from 'tstyche';

const productKey = defineKey('product', (id: string) => [id]);
const pageKey = defineKey('page', (page: number, size?: number) => [page, size]);
const allKey = defineKey('all', () => []);

declare const cache: StampedeCache;

describe('a defined key', () => {
  test('makes a key of its arguments', () => {
    expect(productKey).type.toBe<DefinedKey<[id: string]>>();
    expect(productKey('7')).type.toBe<string>();
    expect(productKey).type.not.toBeCallableWith(7);
    expect(productKey).type.not.toBeCallableWith();
    expect(pageKey).type.toBeCallableWith(1);
    expect(allKey()).type.toBe<string>();
    expect(cache.evict(productKey('7'))).type.toBe<Promise<void>>();
  });

  test('is of parts', () => {
    expect(defineKey).type.not.toBeCallableWith('product', (id: Date) => [id]);
    expect(defineKey).type.not.toBeCallableWith('product', (id: string) => id);
    expect(defineKey).type.not.toBeCallableWith('product', async (id: string) => [id]);
    expect(defineKey).type.not.toBeCallableWith('product', () => undefined);
    expect(defineKey).type.not.toBeCallableWith((id: string) => [id]);
  });

  test('is the key of methods whose arguments fit', () => {
    class Products {
      @CacheAside(productKey, '60s')
      async find(id: string): Promise<string> {
        return id;
      }
      @CacheAside(productKey, { ttl: (product) => (product.length > 3 ? 0 : '60s') })
      async findIn(id: string, _locale: string): Promise<string> {
        return id;
      }
      @CacheAside(allKey, '60s')
      async all(_unused: number): Promise<string[]> {
        return [];
      }
      @CacheEvict(productKey)
      async remove(_id: string): Promise<void> {}
      @CacheEvict({ keys: (id) => [productKey(id), allKey()] })
      async update(_id: string): Promise<void> {}
      @CachePut(productKey, '60s')
      async replace(id: string): Promise<string> {
        return id;
      }
      @WithLock(productKey)
      async recount(_id: string): Promise<void> {}

      // @ts-expect-error is not assignable to parameter of type 'KeyFunction<(id: number) => Promise<string>>'
      @CacheAside(productKey, '60s')
      async findByNumber(id: number): Promise<string> {
        return `${id}`;
      }
      // @ts-expect-error is not assignable to parameter of type
      @CacheEvict(productKey)
      async removeAll(): Promise<void> {}
      // @ts-expect-error is not assignable to parameter of type
      @CachePut(productKey, '60s')
      async replaceByNumber(id: number): Promise<string> {
        return `${id}`;
      }
      // @ts-expect-error is not assignable to parameter of type
      @WithLock(pageKey)
      async lock(_id: string): Promise<void> {}
    }
    expect<typeof Products>().type.toBeConstructableWith();
  });
});
