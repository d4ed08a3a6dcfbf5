/** What `evictBy` names is evicted: every variant of it, in every process, also while it is being made. */
import { beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, type ExecutionContext, Get, Headers, Injectable, Param, Patch, Query } from '@nestjs/common';
import {
  CacheAside,
  CacheEvict,
  CacheResponse,
  defineKey,
  InvalidKeyError,
  InvalidOptionError,
  responsesOf,
  StampedeCache,
} from 'nestjs-stampede-cache';
import { createTestKit } from 'nestjs-stampede-cache/testing';
import { firstValueFrom, ReplaySubject } from 'rxjs';
import { listenOn, PLATFORMS, raw } from './http-app.js';

let runs = 0;
let begun = new ReplaySubject<void>(1);
let finish = new ReplaySubject<void>(1);
beforeEach(() => {
  runs = 0;
  begun = new ReplaySubject(1);
  finish = new ReplaySubject(1);
});

const paramsOf = (context: ExecutionContext): Record<string, string> => context.switchToHttp().getRequest().params;
const productKey = defineKey('product', (id: string) => [id]);

@Injectable()
class Products {
  @CacheAside((id) => ['product', id], '60s')
  async find(id: string): Promise<object> {
    return { id };
  }
}

@Controller()
class Pages {
  constructor(private readonly products: Products) {}

  @Get('products/:id')
  @CacheResponse({ ttl: '60s', evictBy: (context) => ['product', paramsOf(context)['id']] })
  async page(
    @Param('id') id: string,
    @Query('size') size: string,
    @Headers('accept-language') language: string,
  ): Promise<object> {
    return { product: await this.products.find(id), size, language, run: ++runs };
  }

  @Get('reviews/:id')
  @CacheResponse({
    ttl: '60s',
    key: (context) => [context.switchToHttp().getRequest().headers['x-user'] ?? null],
    evictBy: (context) => ['product', paramsOf(context)['id']],
  })
  async reviews(@Param('id') id: string): Promise<object> {
    return { id, run: ++runs };
  }

  @Patch('products/:id')
  @CacheEvict({ keys: (id) => [['product', id], responsesOf(['product', id])] })
  async change(@Param('id') id: string): Promise<object> {
    return { id };
  }

  @Get('defined/:id')
  @CacheResponse({ ttl: '60s', evictBy: (context) => productKey(String(paramsOf(context)['id'])) })
  async defined(@Param('id') id: string): Promise<object> {
    return { id, run: ++runs };
  }

  @Get('slow/:id')
  @CacheResponse({ ttl: '60s', evictBy: (context) => ['product', paramsOf(context)['id']] })
  async slow(@Param('id') id: string): Promise<object> {
    const run = ++runs;
    begun.next();
    if (run === 1) await firstValueFrom(finish);
    return { id, run };
  }

  @Get('some/:id')
  @CacheResponse({
    ttl: '60s',
    evictBy: (context) => (paramsOf(context)['id'] === 'none' ? undefined : String(paramsOf(context)['id']).trim()),
  })
  async some(@Param('id') id: string): Promise<object> {
    return { id, run: ++runs };
  }
}

describe.each(PLATFORMS)('on %s', (platform) => {
  const start = async () => {
    const kit = createTestKit({ defaults: { staleWhileRevalidate: '1h', earlyRefresh: 1_000 } });
    const processes = await Promise.all(
      [kit, kit.otherProcess()].map(({ module }) =>
        listenOn(platform, { imports: [module], controllers: [Pages], providers: [Products] }, (app) =>
          app.useLogger(false),
        ),
      ),
    );
    const [here, there] = processes.map(({ app, port }) => ({
      cache: app.get(StampedeCache),
      // The port would tell apart what the two are asked for: it is one host.
      ask: async (path: string, method = 'GET', headers: Record<string, string> = {}) =>
        raw(port, path, { method, headers: { host: 'shop', ...headers } }),
    }));
    if (!here || !there) throw new Error();
    return { kit, here, there };
  };

  it('S1: every variant of it, in every process, and no other', async () => {
    const { here, there } = await start();
    const variants: [string, string, Record<string, string>][] = [
      ['/products/1', 'GET', {}],
      ['/products/1?size=s', 'GET', {}],
      ['/products/1?size=m', 'GET', { 'accept-language': 'de' }],
      ['/products/1', 'HEAD', {}],
      ['/reviews/1', 'GET', { 'x-user': 'ada' }],
      ['/reviews/1', 'GET', { 'x-user': 'bob' }],
    ];
    const all = async (status: RegExp) => {
      for (const { ask } of [here, there]) {
        for (const variant of variants) expect((await ask(...variant)).headers['cache-status']).toMatch(status);
      }
    };
    expect((await here.ask('/products/2')).json).toMatchObject({ product: { id: '2' }, run: 1 });
    await all(/./);
    await all(/^stampede; hit/);
    expect(runs).toBe(1 + variants.length);
    await there.ask('/products/1', 'PATCH');
    for (const variant of variants)
      expect((await here.ask(...variant)).headers['cache-status']).toMatch(/^stampede; fwd=miss; stored/);
    await all(/^stampede; hit/);
    expect((await there.ask('/products/2')).json).toMatchObject({ product: { id: '2' }, run: 1 });
    expect(runs).toBe(1 + 2 * variants.length);
  });

  it('a request that comes after the eviction gets nothing that was begun before', async () => {
    const { here, there } = await start();
    const before = here.ask('/slow/1');
    await firstValueFrom(begun);
    await there.cache.evict(responsesOf(['product', '1']));
    expect((await here.ask('/slow/1')).json.run).toBe(2);
    finish.next();
    expect((await before).json.run).toBe(1);
    expect((await there.ask('/slow/1')).json.run).toBe(2);
  });

  it('by a key that is defined', async () => {
    const { here, there } = await start();
    for (const run of [1, 1]) expect((await here.ask('/defined/7')).json.run).toBe(run);
    await here.cache.evict(productKey('7'));
    expect((await here.ask('/defined/7')).json.run).toBe(1);
    await there.cache.evict(responsesOf(productKey('7')));
    expect((await here.ask('/defined/7')).json.run).toBe(2);
  });

  it('without a key the request is not cached; what can be none is an error', async () => {
    const { here } = await start();
    for (const run of [1, 2]) {
      const { json, headers } = await here.ask('/some/none');
      expect([json.run, headers['cache-status']]).toEqual([run, 'stampede; fwd=bypass; detail="evictBy"']);
    }
    expect((await here.ask('/some/%20')).status).toBe(500);
  });
});

it('T1: is checked where it is written', () => {
  const options = { ttl: 1, evictBy: ['product'] } as never;
  expect(() => CacheResponse(options)).toThrow(InvalidOptionError);
  expect(() => CacheResponse(options)).toThrow(expect.objectContaining({ option: 'evictBy' }));
  expect(() => responsesOf([])).toThrow(InvalidKeyError);
});
