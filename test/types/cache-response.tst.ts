import type { ExecutionContext } from '@nestjs/common';
import { type BodyOf, CacheResponse } from 'nestjs-stampede-cache';
import type { Observable } from 'rxjs';
import { describe, expect, test } from 'tstyche';

interface Page {
  readonly title: string;
}

describe('@CacheResponse', () => {
  test('decorates handlers of every kind', () => {
    class Pages {
      @CacheResponse('60s')
      value(): Page {
        return { title: '' };
      }
      @CacheResponse({ ttl: ({ title }) => (title === '' ? 0 : '60s'), query: ['page'], cache: 'pages' })
      async promise(_page: string): Promise<Page> {
        return { title: '' };
      }
      @CacheResponse(({ title }) => (title === '' ? 0 : '60s'))
      observable(): Observable<Page> {
        throw new Error();
      }
      @CacheResponse({ ttl: 5, cacheIf: (page) => page.title !== '' })
      async promiseOfObservable(): Promise<Observable<Page>> {
        throw new Error();
      }
    }
    expect<BodyOf<Pages['value']>>().type.toBe<Page>();
    expect<BodyOf<Pages['promise']>>().type.toBe<Page>();
    expect<BodyOf<Pages['observable']>>().type.toBe<Page>();
    expect<BodyOf<Pages['promiseOfObservable']>>().type.toBe<Page>();
  });

  test('decorates controllers', () => {
    @CacheResponse({ ttl: '60s', cacheIf: (body) => expect(body).type.toBe<unknown>() === undefined })
    class Pages {
      @CacheResponse(false)
      value(): Page {
        return { title: '' };
      }
    }
    expect<typeof Pages>().type.toBeConstructableWith();
  });

  test('takes what belongs to HTTP', () => {
    const key = (context: ExecutionContext) => (context.getType() === 'http' ? ['user', 1, null] : undefined);
    expect(CacheResponse).type.toBeCallableWith({
      ttl: 5,
      vary: ['accept-language'],
      key,
      shared: true,
      headers: ['x-total-count'],
      clientMayRefresh: true,
      cacheControl: 'no-cache' as const,
    });
    expect(CacheResponse).type.toBeCallableWith({ ttl: 5, key: () => 'text', cacheControl: false as const });
    expect(CacheResponse).type.toBeCallableWith({ ttl: 5, evictBy: key });
    expect(CacheResponse).type.not.toBeCallableWith({ ttl: 5, evictBy: async () => 'text' });
    expect(CacheResponse).type.not.toBeCallableWith({ ttl: 5, key: async () => 'text' });
    expect(CacheResponse).type.not.toBeCallableWith({ ttl: 5, key: () => ({ user: 1 }) });
    expect(CacheResponse).type.not.toBeCallableWith({ ttl: 5, vary: 'cookie' });
    expect(CacheResponse).type.not.toBeCallableWith({ ttl: 5, cacheControl: 'private' });
    expect(CacheResponse).type.not.toBeCallableWith(true);
  });

  test('refuses options that can not be', () => {
    expect(CacheResponse).type.not.toBeCallableWith('60 secons');
    expect(CacheResponse).type.not.toBeCallableWith({ ttl: '60s' as const, query: 'page' });
    class Pages {
      // @ts-expect-error 'vari' does not exist
      @CacheResponse({ ttl: '60s', vari: [] })
      first(): Page {
        return { title: '' };
      }
      // @ts-expect-error Property 'name' does not exist on type 'Page'
      @CacheResponse((page) => (page.name === '' ? 0 : 1))
      second(): Page {
        return { title: '' };
      }
    }
    expect<typeof Pages>().type.toBeConstructableWith();
  });
});
