/** What is told of an answer: Cache-Status (RFC 9211), Age and Cache-Control (RFC 9111, RFC 5861), Vary, ETag and 304. */
import { connect, type IncomingHttpHeaders } from 'node:http2';
import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  ForbiddenException,
  Get,
  Header,
  type INestApplication,
  Injectable,
  type NestInterceptor,
  Param,
  Post,
  Query,
  Req,
  Res,
  UseInterceptors,
} from '@nestjs/common';
import {
  CacheResponse,
  InvalidOptionError,
  MemoryServer,
  MemoryStore,
  StampedeCache,
  StampedeCacheModule,
  type StampedeCacheModuleOptions,
} from 'nestjs-stampede-cache';
import { delay, from, map, type Observable, tap } from 'rxjs';
import { FaultyStore } from '../../../lib/testing/faulty-store.js';
import { TestClock } from '../../support/clock.js';
import { eventually } from '../../support/eventually.js';
import { keptLogger, moment } from '../apps.js';
import { crowd, listenOn, PLATFORMS, type Platform, type RawResponse, raw } from './http-app.js';

interface SomeResponse {
  status(code: number): unknown;
  header(name: string, value: string): unknown;
}

/** Wide enough for a busy machine. */
const WITHIN = { within: 20_000 };

let runs = 0;
let failing = false;
/** What slow handlers wait for. */
let gate: { readonly promise: Promise<void>; open(): void };
beforeEach(() => {
  runs = 0;
  failing = false;
  shutGate();
});

function shutGate(): void {
  let open = () => {};
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  gate = { promise, open };
}

@Injectable()
class Refusing implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(
      tap(() => {
        if (context.switchToHttp().getRequest().headers['x-real-ip'] === 'bad') throw new ForbiddenException();
      }),
    );
  }
}

/** Takes a while after the body is there. */
@Injectable()
class Delaying implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(delay(100));
  }
}

@Injectable()
class Wrapping implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map((body) => ({ wrapped: body })));
  }
}

@Controller()
class Pages {
  @Get('page/:id')
  @CacheResponse('60s')
  page(@Param('id') id: string, @Query('big') big?: string): object {
    return { id, run: ++runs, text: big ? 'x'.repeat(100_000) : '' };
  }
  @Get('short')
  @CacheResponse({ ttl: '1500ms', staleWhileRevalidate: '30s', staleIfError: '1h' })
  async short(@Res({ passthrough: true }) response: SomeResponse): Promise<object> {
    const run = ++runs;
    if (failing) throw new Error('broken');
    response.status(202);
    response.header('content-language', `x-run${run}`);
    response.header('x-run', String(run));
    return moment({ run });
  }
  @Get('slowly-sent')
  @CacheResponse({ ttl: '1s', staleWhileRevalidate: '1h' })
  @UseInterceptors(Delaying)
  slowlySent(@Res({ passthrough: true }) response: SomeResponse): object {
    const run = ++runs;
    response.header('content-language', `x-run${run}`);
    return { run };
  }
  @Get('if-error')
  @CacheResponse({ ttl: '1s', staleIfError: '1h', errorHoldOff: 0 })
  async ifError(): Promise<object> {
    runs += 1;
    if (failing) throw new Error('broken');
    return { run: runs };
  }
  @Get('soft')
  @CacheResponse({ ttl: '1s', staleIfError: '1h', softTimeout: 30 })
  async soft(@Res({ passthrough: true }) response: SomeResponse): Promise<object> {
    const run = ++runs;
    response.status(201);
    response.header('content-language', `x-before${run}`);
    if (run > 1) {
      response.header('content-disposition', 'inline');
      await gate.promise;
    }
    response.header('link', `</run/${run}>`);
    return { run };
  }
  @Get('by-user')
  @CacheResponse({ ttl: '60s', key: (context) => context.switchToHttp().getRequest().headers['x-user'] })
  byUser(): object {
    return { run: ++runs };
  }
  @Get('shared')
  @CacheResponse({ ttl: '60s', shared: true })
  shared(): object {
    return { run: ++runs };
  }
  @Get('own')
  @CacheResponse('60s')
  own(@Res({ passthrough: true }) response: SomeResponse): object {
    response.header('cache-control', 'public, max-age=5');
    return { run: ++runs };
  }
  @Get('decorated')
  @Header('Cache-Control', 'max-age=7')
  @CacheResponse('60s')
  decorated(): object {
    return { run: ++runs };
  }
  @Get('asks')
  @CacheResponse({ ttl: '60s', cacheControl: 'no-cache' })
  asks(): object {
    return { run: ++runs };
  }
  @Get('silent')
  @CacheResponse({ ttl: '60s', cacheControl: false })
  silent(): object {
    return { run: ++runs };
  }
  @Get('for-ever')
  @CacheResponse({ ttl: Infinity, clientMayRefresh: true })
  forEver(): object {
    return { run: ++runs };
  }
  @Get('not-kept')
  @CacheResponse({ ttl: '60s', cacheIf: () => false })
  notKept(): object {
    return { run: ++runs };
  }
  @Get('wrong')
  @CacheResponse({ ttl: () => 'soon' as never })
  wrong(): object {
    return { run: ++runs };
  }
  @Get('refreshed')
  @CacheResponse({ ttl: '60s', clientMayRefresh: true })
  async refreshed(@Query('together') together?: string): Promise<object> {
    const body = { run: ++runs };
    if (together) await gate.promise;
    return body;
  }
  @Get('observed')
  @CacheResponse('60s')
  observed(): Observable<object> {
    const run = ++runs;
    return from(gate.promise).pipe(map(() => ({ run })));
  }
  @Get('for-any-origin')
  @CacheResponse('60s')
  forAnyOrigin(@Res({ passthrough: true }) response: SomeResponse): object {
    response.header('Access-Control-Allow-Origin', '*');
    return { run: ++runs };
  }
  @Get('for-one-origin')
  @CacheResponse('60s')
  forOneOrigin(@Req() request: { headers: { origin: string } }, @Res({ passthrough: true }) response: SomeResponse) {
    response.header('Access-Control-Allow-Origin', request.headers.origin);
    return { run: ++runs };
  }
  @Get('total')
  @CacheResponse({ ttl: '60s', headers: ['X-Total-Count'] })
  total(@Res({ passthrough: true }) response: SomeResponse): object {
    response.header('x-total-count', '7');
    return { run: ++runs };
  }
  @Get('tagged')
  @CacheResponse('60s')
  tagged(@Res({ passthrough: true }) response: SomeResponse): object {
    response.header('etag', `"run ${++runs}"`);
    return { run: runs };
  }
  @Get('refused')
  @CacheResponse('60s')
  @UseInterceptors(Refusing)
  refused(): object {
    return { run: ++runs };
  }
  @Get('wrapped')
  @CacheResponse('60s')
  @UseInterceptors(Wrapping)
  wrapped(): object {
    return { run: ++runs };
  }
  @Post('page/:id')
  @CacheResponse('60s')
  change(): object {
    return { run: ++runs };
  }
  @Get('named')
  @CacheResponse({ ttl: '60s', cache: 'the-"pages"' })
  named(): object {
    return { run: ++runs };
  }
  @Get('nothing/:id')
  @CacheResponse('60s')
  nothing(@Req() _request: unknown): object {
    throw new ForbiddenException();
  }
}

/** Opens the gate when so many requests have arrived, and their interceptors have run. */
function openFor(requests: number) {
  let arrived = 0;
  return (app: INestApplication) =>
    app.useGlobalGuards({
      canActivate() {
        arrived += 1;
        if (arrived === requests) setTimeout(() => gate.open(), 20);
        return true;
      },
    });
}

async function startOn(
  platform: Platform,
  options: StampedeCacheModuleOptions = {},
  configure?: (app: INestApplication) => unknown,
) {
  // Entries age by the store's clock, which the tests move.
  const clock = new TestClock();
  const server = new MemoryServer({ clock });
  const logger = keptLogger();
  const { app, port } = await listenOn(
    platform,
    {
      imports: [
        StampedeCacheModule.forTest({ logger, store: new MemoryStore({ server }), ...options }),
        StampedeCacheModule.forTest({ name: 'the "pages"'.replaceAll(' ', '-') }),
      ],
      controllers: [Pages],
    },
    configure,
  );
  const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    raw(port, path, { headers, method });
  return { app, get, clock, server, logger, cache: app.get(StampedeCache) };
}

const told = ({ headers }: RawResponse) => [headers['cache-status'], headers['age'], headers['cache-control']];
const MAX_AGE = 'public, max-age=60';

describe.each(PLATFORMS)('on %s', (platform) => {
  const start = (options?: StampedeCacheModuleOptions, configure?: (app: INestApplication) => unknown) =>
    startOn(platform, options, configure);

  it('tells hits and misses, how old they are, and how long they last', async () => {
    const { get, clock } = await start();
    expect(told(await get('/page/1'))).toEqual(['stampede; fwd=miss; stored; ttl=60', undefined, MAX_AGE]);
    expect(told(await get('/page/1'))).toEqual(['stampede; hit; ttl=60', '0', MAX_AGE]);
    await clock.advance(20_500);
    expect(told(await get('/page/1'))).toEqual(['stampede; hit; ttl=39', '20', MAX_AGE]);
    expect(told(await get('/page/1', {}, 'HEAD'))).toEqual(['stampede; fwd=miss; stored; ttl=60', undefined, MAX_AGE]);
    await clock.advance(39_500);
    expect(told(await get('/page/1'))).toEqual(['stampede; fwd=miss; stored; ttl=60', undefined, MAX_AGE]);
    expect(runs).toBe(3);
  });

  it('tells who waited, and what is none of its business', async () => {
    const { get } = await start({}, openFor(3));
    const together = await crowd(3, () => get('/refreshed?together=1'));
    expect(together.map((answer) => answer.headers['cache-status']).sort()).toEqual([
      'stampede; fwd=miss; collapsed',
      'stampede; fwd=miss; collapsed',
      'stampede; fwd=miss; stored; ttl=60',
    ]);
    for (const answer of together) expect(answer.headers['cache-control']).toBe(MAX_AGE);
    expect(told(await get('/page/1', { cookie: 'a=b' }))).toEqual([
      'stampede; fwd=bypass; detail="cookie"',
      undefined,
      undefined,
    ]);
    expect(told(await get('/page/1', {}, 'POST'))).toEqual(['stampede; fwd=method', undefined, undefined]);
    expect(told(await get('/by-user'))).toEqual(['stampede; fwd=bypass; detail="key"', undefined, undefined]);
    expect(told(await get('/not-kept'))).toEqual(['stampede; fwd=miss', undefined, undefined]);
    expect(told(await get('/wrong'))).toEqual(['stampede; fwd=miss', undefined, undefined]);
  });

  it('says for whom an answer is', async () => {
    const { get } = await start();
    expect((await get('/page/1')).headers['vary']).toBe('Authorization, Cookie');
    const { headers } = await get('/by-user', { 'x-user': 'ada' });
    expect([headers['cache-control'], headers['vary']]).toEqual([
      'private, max-age=60',
      'Authorization, Cookie, x-user',
    ]);
    const shared = await get('/shared', { cookie: 'a=b' });
    expect([shared.headers['cache-control'], shared.headers['vary']]).toEqual([MAX_AGE, undefined]);
  });

  it('leaves to the application what it says itself', async () => {
    const { get, clock } = await start();
    for (const path of ['/own', '/decorated', '/asks', '/silent']) {
      await get(path);
      await clock.advance(1_000);
    }
    expect(told(await get('/own')).slice(1)).toEqual(['4', 'public, max-age=5']);
    expect(told(await get('/decorated')).slice(1)).toEqual(['3', 'max-age=7']);
    expect(told(await get('/asks')).slice(1)).toEqual(['2', 'public, no-cache']);
    expect(told(await get('/silent')).slice(1)).toEqual(['1', undefined]);
    expect(runs).toBe(4);
  });

  it('an answer without end has an age, too', async () => {
    const { get, clock } = await start();
    await get('/for-ever');
    await clock.advance(100_000_000);
    expect(told(await get('/for-ever'))).toEqual(['stampede; hit; ttl=31536000', '100000', 'public, max-age=31536000']);
    expect((await get('/for-ever', { 'cache-control': 'no-cache' })).json.run).toBe(2);
  });

  it('tells caches nothing of an error that an interceptor outside makes of it', async () => {
    const { get } = await start();
    for (let request = 0; request < 2; request += 1) {
      const refused = await get('/refused', { 'x-real-ip': 'bad' });
      expect(refused.status).toBe(403);
      expect(told(refused)).toEqual([undefined, undefined, undefined]);
    }
    expect(told(await get('/refused'))[2]).toBe(MAX_AGE);
    expect(told(await get('/nothing/1'))).toEqual([undefined, undefined, undefined]);
    expect(runs).toBe(1);
  });

  it('keeps an answer on which a cookie is set at the last moment from shared caches', async () => {
    const { get } = await start({}, (app) => {
      app.use(
        (
          _request: unknown,
          response: { writeHead: (...args: unknown[]) => unknown; setHeader(name: string, value: string): void },
          next: () => void,
        ) => {
          const { writeHead } = response;
          response.writeHead = (...args) => {
            response.setHeader('Set-Cookie', 'session=new');
            return writeHead.apply(response, args);
          };
          next();
        },
      );
    });
    const answers = [await get('/page/1'), await get('/page/1')];
    expect(runs).toBe(1);
    for (const { headers } of answers) expect(headers['cache-control']).toBe('private, max-age=60');
  });

  it('stores the headers that are named, and warns once of those that are not', async () => {
    const { get, logger } = await start();
    expect((await get('/total')).headers['x-total-count']).toBe('7');
    expect((await get('/total')).headers['x-total-count']).toBe('7');
    expect(logger.lines).toEqual([]);
    await crowd(2, () => get('/short'));
    expect(logger.lines).toEqual([
      "warn: Pages.short has @CacheResponse(), but sets x-run, which stored answers don't have. Name what they need: headers: ['x-run'].",
    ]);
  });

  it('every origin of a handler gets what it says of all; what it says of one is not stored', async () => {
    const { get, logger } = await start();
    for (let request = 0; request < 2; request += 1) {
      const { headers, json } = await get('/for-any-origin');
      expect([headers['access-control-allow-origin'], json.run]).toEqual(['*', 1]);
    }
    expect(logger.lines).toEqual([]);
    for (const origin of ['https://a.example', 'https://b.example', 'https://a.example'])
      expect((await get('/for-one-origin', { origin })).headers['access-control-allow-origin']).toBe(origin);
    expect(runs).toBe(4);
    expect(logger.lines).toEqual([
      'warn: Pages.forOneOrigin has @CacheResponse(), but sets access-control-allow-origin, which may be for one origin only. Leave that to app.enableCors().',
    ]);
  });

  it('tells nobody to keep what the store did not take', async () => {
    const clock = new TestClock();
    const store = new FaultyStore(new MemoryStore({ server: new MemoryServer({ clock }) }), clock);
    const { get } = await start({ store }, openFor(3));
    store.isAway('rejects');
    gate.open();
    expect(told(await get('/page/1'))).toEqual(['stampede; fwd=miss', undefined, undefined]);
    expect(told(await get('/page/1'))).toEqual(['stampede; hit', undefined, undefined]);
    shutGate();
    for (const answer of await crowd(2, () => get('/refreshed?together=1')))
      expect(told(answer).slice(1)).toEqual([undefined, undefined]);
  });

  it('the body that an interceptor outside makes is made for hits as well', async () => {
    const { get } = await start();
    expect((await get('/wrapped')).json).toEqual({ wrapped: { run: 1 } });
    expect((await get('/wrapped')).json).toEqual({ wrapped: { run: 1 } });
  });

  describe('ETag and 304', () => {
    const configure = async (app: INestApplication) => {
      if (platform === 'Fastify') await app.getHttpAdapter().getInstance().register(import('@fastify/etag'));
    };

    it.each(['/page/1', '/tagged'])('of %s', async (path) => {
      const { get, clock } = await start({}, configure);
      const first = await get(path);
      const etag = String(first.headers['etag']);
      expect(etag).not.toBe('undefined');
      await clock.advance(5_000);
      expect((await get(path)).headers['etag']).toBe(etag);
      const fresh = await get(path, { 'if-none-match': etag });
      expect([fresh.status, fresh.body]).toEqual([304, '']);
      expect(told(fresh)).toEqual(['stampede; hit; ttl=55', '5', MAX_AGE]);
      expect((await get(path, { 'if-none-match': '"other"' })).status).toBe(200);
      expect(runs).toBe(1);
    });

    it('of who comes with a condition to a cold cache: others get the whole', async () => {
      const { get } = await start({}, configure);
      const { headers } = await get('/page/1');
      const etag = String(headers['etag']);
      const cold = await start({}, configure);
      runs = 0;
      expect((await cold.get('/page/1', { 'if-none-match': etag })).status).toBe(304);
      const whole = await cold.get('/page/1');
      expect([whole.status, whole.json.run]).toEqual([200, 1]);
    });
  });

  describe("a request's Cache-Control", () => {
    const RELOAD: Record<string, string>[] = [
      { 'cache-control': 'no-cache' },
      { 'cache-control': 'foo=bar, No-Cache' },
      { 'cache-control': 'max-age=0' },
      { pragma: 'no-cache' },
    ];

    it('is ignored by default', async () => {
      const { get } = await start();
      await get('/page/1');
      const others = ['no-store', 'only-if-cached', 'min-fresh=100', 'max-age=1'].map((value) => ({
        'cache-control': value,
      }));
      for (const headers of [...RELOAD, ...others]) expect((await get('/page/1', headers)).json.run).toBe(1);
      expect((await get('/page/2', { 'cache-control': 'only-if-cached' })).status).toBe(200);
      expect((await get('/page/3', { 'cache-control': 'no-store' })).headers['cache-status']).toContain('stored');
    });

    it('reloads where clientMayRefresh is set, and others get what was loaded', async () => {
      const { get } = await start();
      await get('/refreshed');
      let run = 1;
      for (const headers of RELOAD) {
        const answer = await get('/refreshed', headers);
        run += 1;
        expect(answer.json.run).toBe(run);
        expect(answer.headers['cache-status']).toBe('stampede; fwd=request; stored; ttl=60');
        expect((await get('/refreshed')).json.run).toBe(run);
      }
      for (const headers of [
        { 'cache-control': 'max-age=10' },
        { 'cache-control': 'no-cache-at-all' },
        { 'cache-control': 'max-age=60', pragma: 'no-cache' },
      ])
        expect((await get('/refreshed', headers as Record<string, string>)).json.run).toBe(run);
    });

    it('S1: 20 reloads at once run the handler once', async () => {
      const { get } = await start({}, openFor(1 + 20));
      gate.open();
      await get('/refreshed?together=1');
      shutGate();
      const answers = await crowd(20, () => get('/refreshed?together=1', { 'cache-control': 'no-cache' }));
      expect(runs).toBe(2);
      for (const { json } of answers) expect(json.run).toBe(2);
    });
  });

  describe('stale answers', () => {
    it('T2: the old one at once, then the new one with the status and headers of its own run', async () => {
      const { get, clock, cache } = await start();
      const fills: unknown[] = [];
      cache.events.subscribe((event) => event.type === 'fill' && fills.push(event.key));
      const first = await get('/short');
      expect([first.status, first.headers['content-language'], first.json.run]).toEqual([202, 'x-run1', 1]);
      expect(told(first)[2]).toBe('public, max-age=1, stale-while-revalidate=30, stale-if-error=3600');
      await clock.advance(4_000);
      const stale = await get('/short');
      expect([stale.status, stale.headers['content-language'], stale.json.run]).toEqual([202, 'x-run1', 1]);
      expect(stale.headers['x-run']).toBeUndefined();
      expect(told(stale).slice(0, 2)).toEqual(['stampede; hit; ttl=-2', '4']);
      await eventually(() => fills.length === 2, WITHIN);
      const fresh = await get('/short');
      expect([fresh.status, fresh.headers['content-language'], fresh.json.run]).toEqual([202, 'x-run2', 2]);
      expect(told(fresh).slice(0, 2)).toEqual(['stampede; hit; ttl=1', '0']);
      expect(runs).toBe(2);
    });

    it('one that takes its time to be sent is not disturbed by the load in the background', async () => {
      const { get, clock, cache } = await start();
      const fills: unknown[] = [];
      cache.events.subscribe((event) => event.type === 'fill' && fills.push(event.key));
      await get('/slowly-sent');
      await clock.advance(3_000);
      const stale = await get('/slowly-sent');
      expect([stale.json.run, stale.headers['content-language']]).toEqual([1, 'x-run1']);
      await eventually(() => fills.length === 2, WITHIN);
      const fresh = await get('/slowly-sent');
      expect([fresh.json.run, fresh.headers['content-language']]).toEqual([2, 'x-run2']);
    });

    it('the old one when the load fails', async () => {
      const { get, clock } = await start();
      await get('/if-error');
      await clock.advance(3_000);
      failing = true;
      const answer = await get('/if-error');
      expect([answer.status, answer.json.run]).toEqual([200, 1]);
      expect(told(answer)).toEqual([
        'stampede; fwd=stale; ttl=-2; detail=if-error',
        '3',
        'public, max-age=1, stale-if-error=3600',
      ]);
    });

    it('the old one when the load takes too long; what the handler has set and sets belongs to the new one', async () => {
      const { get, clock, cache } = await start();
      const fills: unknown[] = [];
      cache.events.subscribe((event) => event.type === 'fill' && fills.push(event.key));
      await get('/soft');
      await clock.advance(3_000);
      const stale = await get('/soft');
      expect([stale.status, stale.json.run]).toEqual([201, 1]);
      expect([stale.headers['content-language'], stale.headers['link']]).toEqual(['x-before1', '</run/1>']);
      expect(stale.headers['content-disposition']).toBeUndefined();
      gate.open();
      await eventually(() => fills.length === 2, WITHIN);
      const fresh = await get('/soft');
      expect([fresh.status, fresh.json.run, fresh.headers['content-language'], fresh.headers['link']]).toEqual([
        201,
        2,
        'x-before2',
        '</run/2>',
      ]);
    });
  });

  it.each(['/refreshed?together=1', '/observed'])('a client that leaves takes nobody with it: %s', async (path) => {
    const { get, app } = await start();
    const url = await app.getUrl();
    const leaving = new AbortController();
    const left = fetch(`${url}${path}`, { signal: leaving.signal }).catch((error: unknown) => error);
    await eventually(() => runs === 1, WITHIN);
    const others = crowd(5, () => get(path, { host: new URL(url).host }));
    leaving.abort();
    expect(await left).toMatchObject({ name: 'AbortError' });
    gate.open();
    for (const { status, json } of await others) expect([status, json.run]).toEqual([200, 1]);
    expect(runs).toBe(1);
  });
});

describe('HTTP/2', () => {
  it('is cached, and its stale answers are refreshed', async () => {
    const clock = new TestClock();
    const { app } = await listenOn(
      'Fastify',
      {
        imports: [
          StampedeCacheModule.forTest({ store: new MemoryStore({ server: new MemoryServer({ clock }) }) }),
          StampedeCacheModule.forTest({ name: 'the-"pages"' }),
        ],
        controllers: [Pages],
      },
      undefined,
      { http2: true },
    );
    const fills: unknown[] = [];
    app.get(StampedeCache).events.subscribe((event) => event.type === 'fill' && fills.push(event.key));
    const client = connect(await app.getUrl());
    const get = (path: string) =>
      new Promise<[unknown, unknown, unknown]>((resolve, reject) => {
        const stream = client.request({ ':path': path });
        let headers: IncomingHttpHeaders = {};
        const chunks: Buffer[] = [];
        stream.on('response', (received) => {
          headers = received;
        });
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.on('end', () =>
          resolve([headers[':status'], headers['age'], JSON.parse(Buffer.concat(chunks).toString()).run]),
        );
        stream.on('error', reject);
      });
    try {
      expect(await get('/short')).toEqual([202, undefined, 1]);
      expect(await get('/short')).toEqual([202, '0', 1]);
      await clock.advance(4_000);
      expect(await get('/short')).toEqual([202, '4', 1]);
      await eventually(() => fills.length === 2, WITHIN);
      expect(await get('/short')).toEqual([202, '0', 2]);
    } finally {
      client.close();
    }
  });
});

it.each<[string, object]>([
  ['vary', { vary: 'cookie' }],
  ['vary', { vary: ['*'] }],
  ['vary', { vary: ['accept language'] }],
  ['key', { key: ['user'] }],
  ['shared', { shared: 'yes' }],
  ['headers', { headers: ['Set-Cookie'] }],
  ['headers', { headers: ['vary'] }],
  ['headers', { headers: [7] }],
  ['clientMayRefresh', { clientMayRefresh: 1 }],
  ['cacheControl', { cacheControl: 'private' }],
  ['cacheControl', { cacheControl: true }],
])('T1: a wrong %s is an error at decoration: %p', (option, options) => {
  expect(() => CacheResponse({ ttl: 1, ...options } as never)).toThrow(InvalidOptionError);
  expect(() => CacheResponse({ ttl: 1, ...options } as never)).toThrow(expect.objectContaining({ option }));
});
