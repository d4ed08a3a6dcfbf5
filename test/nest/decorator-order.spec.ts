/** Decorators of ours, of Nest, of other packages and of the user's own, in any order on one method. */
import { describe, expect, it } from '@jest/globals';
import { applyDecorators, Controller, Get, Injectable, Param, SetMetadata, type Type } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { ApiOkResponse, ApiOperation, ApiParam, DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import {
  CacheAside,
  CacheEvict,
  CachePut,
  defineKey,
  LockService,
  StampedeCache,
  StampedeCacheModule,
  WithLock,
} from 'nestjs-stampede-cache';
import { listen, moment, startApp } from './apps.js';

const productKey = defineKey('product', (id: string) => [id]);
const totalKey = defineKey('total', () => []);

const ORDERS = [
  [0, 1, 2],
  [0, 2, 1],
  [1, 0, 2],
  [1, 2, 0],
  [2, 0, 1],
  [2, 1, 0],
] as const;

describe('three of ours on one method', () => {
  const [aside, evict, lock] = [
    CacheAside(productKey, '60s'),
    CacheEvict({ keys: () => [totalKey()] }),
    WithLock(productKey),
  ] as MethodDecorator[];
  const decorators: readonly [string, MethodDecorator][] = [
    ['@CacheAside', aside!],
    ['@CacheEvict', evict!],
    ['@WithLock', lock!],
  ];

  it.each(ORDERS.map((order) => order.map((i) => decorators[i]!)))('%p, %p, %p', async (...order) => {
    @Injectable()
    class Products {
      runs = 0;
      running = 0;
      most = 0;
      heldInside: boolean[] = [];

      constructor(readonly locks: LockService) {}

      async find(id: string): Promise<string> {
        this.runs += 1;
        this.most = Math.max(this.most, ++this.running);
        const free = await this.locks.tryAcquire(productKey(id));
        this.heldInside.push(free === undefined);
        await free?.release();
        await moment(undefined);
        this.running -= 1;
        return `product ${id}`;
      }
    }
    const descriptor = Object.getOwnPropertyDescriptor(Products.prototype, 'find')!;
    const decorate = [...order].reverse().map(([, decorator]) => decorator);
    for (const decorator of decorate) decorator(Products.prototype, 'find', descriptor);
    Object.defineProperty(Products.prototype, 'find', descriptor);

    const app = await startApp({ imports: [StampedeCacheModule.forTest()], providers: [Products] });
    const [products, cache] = [app.get(Products), app.get(StampedeCache)];
    await cache.set(totalKey(), 7, '60s');
    const found = await Promise.all(Array.from({ length: 10 }, () => products.find('1')));
    expect(found).toEqual(Array(10).fill('product 1'));
    expect({ runs: products.runs, most: products.most, held: products.heldInside }).toEqual({
      runs: 1,
      most: 1,
      held: [true],
    });
    expect(await cache.get(productKey('1'))).toBe('product 1');
    expect(await cache.has(totalKey())).toBe(false);
    const lock = await app.get(LockService).tryAcquire(productKey('1'));
    expect(lock).toBeDefined();
    await lock?.release();

    // Below @CacheAside what it answers from the cache evicts nothing.
    await cache.set(totalKey(), 7, '60s');
    await products.find('1');
    const names = order.map(([name]) => name);
    expect(await cache.has(totalKey())).toBe(names.indexOf('@CacheEvict') > names.indexOf('@CacheAside'));
  });
});

/** A decorator of the user's own, that wraps and keeps nothing; some return a new descriptor. */
function Traced(trace: string[], renew: boolean): MethodDecorator {
  return (_target, property, descriptor) => {
    const method = descriptor.value as unknown as (...args: unknown[]) => Promise<unknown>;
    const wrapped = async function (this: unknown, ...args: unknown[]) {
      trace.push(`begin ${String(property)}`);
      try {
        return await method.apply(this, args);
      } finally {
        trace.push(`end ${String(property)}`);
      }
    };
    if (renew) return { ...descriptor, value: wrapped as never };
    descriptor.value = wrapped as never;
    return descriptor;
  };
}

describe("the user's own decorators that wrap", () => {
  it.each([[true], [false]])(
    'run for each call above, and for each load below: returning a descriptor: %p',
    async (renew) => {
      const trace: string[] = [];
      @Injectable()
      class Products {
        @Traced(trace, renew)
        @CacheAside(productKey, '60s')
        async above(id: string): Promise<string> {
          return id;
        }
        @CacheAside(totalKey, '60s')
        @Traced(trace, renew)
        async below(): Promise<string> {
          return 'total';
        }
      }
      const products = (await startApp({ imports: [StampedeCacheModule.forTest()], providers: [Products] })).get(
        Products,
      );
      for (let call = 0; call < 2; call += 1) {
        await products.above('1');
        await products.below();
      }
      expect(trace).toEqual(['begin above', 'end above', 'begin below', 'end below', 'begin above', 'end above']);
    },
  );

  it('@CacheEvict above one that commits evicts after the commit, below it before', async () => {
    const trace: string[] = [];
    const Transactional = (): MethodDecorator => (_target, _property, descriptor) => {
      const method = descriptor.value as unknown as (...args: unknown[]) => Promise<unknown>;
      descriptor.value = async function (this: unknown, ...args: unknown[]) {
        const result = await method.apply(this, args);
        trace.push('commit');
        return result;
      } as never;
    };
    @Injectable()
    class Products {
      @CacheEvict(productKey)
      @Transactional()
      async right(_id: string): Promise<void> {}
      @Transactional()
      @CacheEvict(productKey)
      async wrong(_id: string): Promise<void> {}
    }
    const app = await startApp({ imports: [StampedeCacheModule.forTest()], providers: [Products] });
    app.get(StampedeCache).events.subscribe(({ type }) => trace.push(type));
    await app.get(Products).right('1');
    await app.get(Products).wrong('1');
    expect(trace).toEqual(['commit', 'evict', 'evict', 'commit']);
  });

  it('may be made of ours and others by applyDecorators', async () => {
    const CachedProduct = () =>
      applyDecorators(SetMetadata('role', 'admin'), CacheAside(productKey, '60s') as MethodDecorator, ApiOperation({}));
    @Injectable()
    class Products {
      runs = 0;
      @CachedProduct()
      async find(id: string): Promise<string> {
        this.runs += 1;
        return id;
      }
    }
    const app = await startApp({ imports: [StampedeCacheModule.forTest()], providers: [Products] });
    await app.get(Products).find('1');
    await app.get(Products).find('1');
    expect(app.get(Products).runs).toBe(1);
    expect(app.get(Reflector).get('role', Products.prototype.find)).toBe('admin');
  });
});

describe('N1: the decorators of @nestjs/swagger', () => {
  const ours = [
    ['@CacheAside', CacheAside(() => 'key', '60s')],
    ['@CachePut', CachePut(() => 'key', '60s')],
    ['@CacheEvict', CacheEvict(() => 'key')],
    ['@WithLock', WithLock(() => 'key')],
  ] as unknown as [string, MethodDecorator][];

  const above = (decorator: MethodDecorator): Type => {
    @Controller('pages')
    class Pages {
      @decorator
      @Get(':id')
      @ApiOperation({ summary: 'a page' })
      @ApiParam({ name: 'id', description: 'which' })
      @ApiOkResponse({ description: 'the page' })
      async find(@Param('id') id: string): Promise<string> {
        return id;
      }
    }
    return Pages;
  };
  const below = (decorator: MethodDecorator): Type => {
    @Controller('pages')
    class Pages {
      @Get(':id')
      @ApiOperation({ summary: 'a page' })
      @ApiParam({ name: 'id', description: 'which' })
      @ApiOkResponse({ description: 'the page' })
      @decorator
      async find(@Param('id') id: string): Promise<string> {
        return id;
      }
    }
    return Pages;
  };

  it.each(
    ours.flatMap(([name, decorator]) => [
      [name, 'above', above(decorator)] as const,
      [name, 'below', below(decorator)] as const,
    ]),
  )('keep what they say with %s %s them', async (_name, _where, controller) => {
    const { app, url } = await listen({ imports: [StampedeCacheModule.forTest()], controllers: [controller] });
    const { paths } = SwaggerModule.createDocument(app, new DocumentBuilder().build());
    expect(paths['/pages/{id}']?.get).toMatchObject({
      summary: 'a page',
      operationId: 'Pages_find',
      parameters: [{ name: 'id', description: 'which', in: 'path', schema: { type: 'string' } }],
      responses: { 200: { description: 'the page' } },
    });
    expect(await (await fetch(`${url}/pages/7`)).text()).toBe('7');
  });
});
