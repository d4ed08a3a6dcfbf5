import {
  CacheAside,
  type CacheProfile,
  CachePut,
  CacheResponse,
  type ProfileName,
  type StampedeCache,
  StampedeCacheModule,
} from 'nestjs-stampede-cache';
import { describe, expect, test } from 'tstyche';

declare module 'nestjs-stampede-cache' {
  interface CacheProfiles {
    products: true;
    sessions: true;
    /** No name: it is a duration. */
    '5s': true;
  }
}

interface Product {
  readonly id: string;
  readonly hot: boolean;
}

declare const cache: StampedeCache;

describe('profiles', () => {
  test('are those that the application declares, durations left out', () => {
    expect<ProfileName>().type.toBeAssignableFrom<'products' | 'sessions'>();
    expect<ProfileName>().type.not.toBeAssignableFrom<'5s'>();
    expect<ProfileName>().type.not.toBeAssignableFrom<string>();
  });

  test('are given in the place of a ttl, or with options in the place of some of theirs', () => {
    class Products {
      @CacheAside((id) => ['product', id.toUpperCase()], 'products')
      async find(id: string): Promise<Product> {
        return { id, hot: true };
      }
      @CacheAside((id) => id, { profile: 'products', cache: 'other', cacheIf: ({ hot }) => !hot })
      async findCold(id: string): Promise<Product> {
        return { id, hot: true };
      }
      @CacheAside((id) => id, { profile: 'sessions', ttl: ({ hot }) => (hot ? '1s' : '60s') })
      async findHot(id: string): Promise<Product> {
        return { id, hot: true };
      }
      @CachePut((id) => id, 'products')
      async replace(id: string): Promise<Product> {
        return { id, hot: true };
      }
      @CachePut((id) => id, { profile: 'products', ttl: ({ hot }) => (hot ? '1s' : '60s') })
      async replaceHot(id: string): Promise<Product> {
        return { id, hot: true };
      }
    }
    expect<typeof Products>().type.toBeConstructableWith();
    expect(cache.getOrLoad('key', async () => 1, 'products')).type.toBe<Promise<number>>();
    expect(cache.getOrLoad('key', () => 1, { profile: 'products', wait: '1s' })).type.toBe<Promise<number>>();
    expect(cache.set('key', 1, 'products')).type.toBe<Promise<void>>();
    expect(cache.set('key', 1, { profile: 'products', ttlJitter: 0.1 })).type.toBe<Promise<void>>();
  });

  test('are given to @CacheResponse in the same way', () => {
    @CacheResponse('products')
    class Pages {
      @CacheResponse('sessions')
      page(): Product {
        return { id: '', hot: true };
      }
      @CacheResponse({ profile: 'products', vary: ['accept-language'], ttl: ({ hot }) => (hot ? '1s' : '60s') })
      async hot(): Promise<Product> {
        return { id: '', hot: true };
      }
    }
    expect<typeof Pages>().type.toBeConstructableWith();
    expect(CacheResponse).type.not.toBeCallableWith('prodcts');
    expect(CacheResponse).type.not.toBeCallableWith({ profile: 'prodcts' });
    expect(CacheResponse).type.not.toBeCallableWith({ profile: 'products', vari: [] });
    expect(CacheResponse).type.not.toBeCallableWith({ vary: ['accept-language'] });
  });

  test('that there are not do not compile', () => {
    const key = () => 'key';
    expect(CacheAside).type.not.toBeCallableWith(key, 'prodcts');
    expect(CacheAside).type.not.toBeCallableWith(key, { profile: 'prodcts' });
    expect(CacheAside).type.not.toBeCallableWith(key, { profile: 'products', tll: 1 });
    expect(CachePut).type.not.toBeCallableWith(key, 'prodcts');
    expect(cache.getOrLoad).type.not.toBeCallableWith('key', async () => 1, 'prodcts');
    expect(cache.set).type.not.toBeCallableWith('key', 1, 'prodcts');
    class Products {
      // @ts-expect-error Argument of type '"prodcts"' is not assignable to parameter
      @CacheAside((id) => id, 'prodcts')
      async find(id: string): Promise<Product> {
        return { id, hot: true };
      }
    }
    expect<typeof Products>().type.toBeConstructableWith();
  });

  test('are written where the module is registered', () => {
    const { forRoot } = StampedeCacheModule;
    const products: CacheProfile = { ttl: '60s', staleWhileRevalidate: '5m' };
    expect(forRoot).type.toBeCallableWith({ profiles: { products } });
    expect(forRoot).type.toBeCallableWith({ profiles: { products, sessions: { ttl: 5_000 } } });
    expect(forRoot).type.not.toBeCallableWith({ profiles: { prodcts: products } });
    expect(forRoot).type.not.toBeCallableWith({ profiles: { products: { staleIfError: '5m' as const } } });
    expect(forRoot).type.not.toBeCallableWith({ profiles: { products: { ttl: '60 secons' } } });
  });
});
