import {
  CacheAside,
  type CacheAsideOptions,
  CacheEvict,
  CachePut,
  type Key,
  type KeyFunction,
  type ResultOf,
  WithLock,
} from 'nestjs-stampede-cache';
import { describe, expect, test } from 'tstyche';

interface Product {
  readonly id: string;
  readonly hot: boolean;
}

describe('the parameters of the key function', () => {
  test("are the method's, without being written again", () => {
    class Products {
      readonly region = 'eu';

      @CacheAside((id) => ['product', id.toUpperCase()], '60s')
      async find(id: string): Promise<Product> {
        return { id, hot: true };
      }
      @CacheAside((id, locale) => ['product', id, locale?.toLowerCase()], '60s')
      async findIn(id: number, locale?: string): Promise<Product> {
        return { id: `${id}${locale}`, hot: true };
      }
      @CacheAside((first, ...rest) => ['products', first, ...rest], '60s')
      async findMany(first: string, ...rest: number[]): Promise<Product[]> {
        return [{ id: `${first}${rest}`, hot: true }];
      }
      @CacheAside(({ page, size = 10 }) => ['page', page, size], '60s')
      async page({ page }: { page: number; size?: number }): Promise<number> {
        return page;
      }
      @CacheAside(() => 'all', '60s')
      async all(): Promise<Product[]> {
        return [];
      }
      @CacheAside((id) => (id === '' ? undefined : id), '60s')
      private async maybe(id: string): Promise<void> {
        await this.maybe(id);
      }
      @CacheAside(function (this: Products, id) {
        return [this.region, id];
      }, '60s')
      protected async inRegion(id: string): Promise<string> {
        return id;
      }
      @CacheAside((value) => ['echo', String(value)], '60s')
      async echo<T>(value: T): Promise<T> {
        return value;
      }

      @CacheEvict((id, changes) => ['product', id, changes.hot])
      async update(id: string, changes: Partial<Product>): Promise<Product> {
        return { id, hot: changes.hot ?? false };
      }
      @CachePut((id) => ['product', id.toUpperCase()], '60s')
      async replace(id: string): Promise<Product> {
        return { id, hot: true };
      }
      @WithLock((id) => ['product', id.toUpperCase()], { wait: '1s', lease: 500, renew: false, cache: 'locks' })
      async recount(id: string): Promise<string> {
        return id;
      }
    }
    expect<typeof Products>().type.toBeConstructableWith();
  });

  test('work in abstract and generic classes', () => {
    abstract class Repository<E extends { id: string }> {
      @CacheAside((id) => ['entity', id.toUpperCase()], { ttl: (entity) => (entity.id === '' ? 0 : '60s') })
      async find(id: string): Promise<E> {
        return this.load(id);
      }
      abstract load(id: string): Promise<E>;
    }
    expect<Repository<Product>['find']>().type.toBe<(id: string) => Promise<Product>>();
  });

  test('must fit', () => {
    class Products {
      // @ts-expect-error is not assignable to parameter of type 'KeyFunction<(id: string) => Promise<Product>>'
      @CacheAside((id: number) => ['product', id], '60s')
      async find(id: string): Promise<Product> {
        return { id, hot: true };
      }
      // @ts-expect-error is not assignable to parameter of type 'KeyFunction<(id: string) => Promise<Product>>'
      @CacheAside((id, locale) => ['product', id, locale], '60s')
      async findOne(id: string): Promise<Product> {
        return { id, hot: true };
      }
      // @ts-expect-error is not assignable to type 'Key | undefined'
      @CacheAside((id) => ({ id }), '60s')
      async findByObject(id: string): Promise<Product> {
        return { id, hot: true };
      }
      // @ts-expect-error Type 'number' is not assignable to type 'Key | undefined'
      @CacheEvict((id) => id)
      async remove(_id: number): Promise<void> {}
      // @ts-expect-error is not assignable to type 'Key | undefined'
      @WithLock(async (id) => id)
      async lock(_id: string): Promise<void> {}
    }
    expect<typeof Products>().type.toBeConstructableWith();
  });
});

describe('what may be decorated', () => {
  test('is an async method of an instance', () => {
    class Products {
      // @ts-expect-error is not assignable to type 'AsyncMethod'
      @CacheAside(() => 'key', '60s')
      sync(): Product {
        return { id: '', hot: true };
      }
      // @ts-expect-error is not assignable to type 'AsyncMethod'
      @CacheEvict(() => 'key')
      void(): void {}
      // @ts-expect-error is not assignable to type 'AsyncMethod'
      @CacheAside(() => 'key', '60s')
      get getter(): Promise<Product> {
        return Promise.resolve({ id: '', hot: true });
      }
      // @ts-expect-error is not assignable to parameter of type 'never'
      @CacheAside(() => 'key', '60s')
      static async find(): Promise<Product> {
        return { id: '', hot: true };
      }
      // @ts-expect-error is not assignable to parameter of type 'never'
      @WithLock(() => 'key')
      static async lock(): Promise<void> {}
      // @ts-expect-error the decorator expects 3
      @CacheAside(() => 'key', '60s')
      readonly property = async () => 'value';
    }
    expect<typeof Products>().type.toBeConstructableWith();
  });
});

describe('options', () => {
  test('functions of the result get what the promise resolves to', () => {
    class Products {
      @CacheAside(
        (id) => id,
        ({ hot }) => (hot ? '1s' : 60_000),
      )
      async find(id: string): Promise<Product> {
        return { id, hot: true };
      }
      @CacheAside((id) => id, {
        ttl: (product) => (product?.hot ? '1s' : '60s'),
        cacheIf: (product) => product !== null,
      })
      async findOrNull(id: string): Promise<Product | null> {
        return { id, hot: true };
      }
      @CachePut((id) => id, { ttl: ({ hot }) => (hot ? '1s' : '60s') })
      async replace(id: string): Promise<Product> {
        return { id, hot: true };
      }
      // @ts-expect-error Property 'cold' does not exist on type 'Product'
      @CacheAside((id) => id, { ttl: ({ cold }) => (cold ? '1s' : '60s') })
      async findCold(id: string): Promise<Product> {
        return { id, hot: true };
      }
    }
    expect<typeof Products>().type.toBeConstructableWith();
  });

  test('a ttl has a unit that there is', () => {
    const key = () => 'key';
    expect(CacheAside).type.toBeCallableWith(key, 60_000);
    expect(CacheAside).type.toBeCallableWith(key, '1.5h');
    expect(CacheAside).type.toBeCallableWith(key, Infinity);
    expect(CacheAside).type.toBeCallableWith(key, { ttl: '60s' as const, cache: 'sessions' });
    expect(CacheAside).type.not.toBeCallableWith(key, '60 secons');
    expect(CacheAside).type.not.toBeCallableWith(key, '60sec');
    expect(CacheAside).type.not.toBeCallableWith(key, '1500');
    expect(CacheAside).type.not.toBeCallableWith(key, null);
    expect(CacheAside).type.not.toBeCallableWith(key);
    expect(CachePut).type.not.toBeCallableWith(key, '60 secons');
    expect(CacheAside).type.not.toBeCallableWith(key, {});
    expect(CacheAside).type.not.toBeCallableWith(key, { ttl: '60s' as const, lease: '5 sec' });
    expect(CacheAside).type.not.toBeCallableWith(key, { ttl: '60s' as const, onWaitTimeout: 'retry' });
    expect(WithLock).type.not.toBeCallableWith(key, { wait: '5 sec' });
    expect(CacheEvict).type.not.toBeCallableWith(key, { cache: 5 });
  });

  test('have no names that there are not', () => {
    class Products {
      // @ts-expect-error 'tll' does not exist
      @CacheAside(() => 'key', { ttl: '60s', tll: 1 })
      async find(): Promise<void> {}
      // @ts-expect-error 'maxWait' does not exist
      @WithLock(() => 'key', { maxWait: 1 })
      async lock(): Promise<void> {}
      // @ts-expect-error 'signal' does not exist
      @CacheAside(() => 'key', { ttl: '60s', signal: AbortSignal.abort() })
      async abort(): Promise<void> {}
    }
    expect<typeof Products>().type.toBeConstructableWith();
  });

  test('can be written beforehand', () => {
    const forAMinute: CacheAsideOptions<Product> = { ttl: '60s', cacheIf: ({ hot }) => !hot };
    const byId: KeyFunction<(id: string) => Promise<Product>> = (id) => ['product', id];
    class Products {
      @CacheAside(byId, forAMinute)
      async find(id: string): Promise<Product> {
        return { id, hot: true };
      }
    }
    expect<ResultOf<Products['find']>>().type.toBe<Product>();
    expect<ReturnType<typeof byId>>().type.toBe<Key | undefined>();
  });
});
