import { Readable } from 'node:stream';
import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  type CallHandler,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Head,
  Header,
  HttpCode,
  HttpException,
  Injectable,
  Module,
  type NestInterceptor,
  NotFoundException,
  Param,
  Post,
  Query,
  Redirect,
  Req,
  Res,
  Scope,
  Sse,
  StreamableFile,
  UseInterceptors,
  Version,
  VersioningType,
} from '@nestjs/common';
import { APP_INTERCEPTOR, RouterModule } from '@nestjs/core';
import {
  CacheAside,
  CacheAsideInterceptor,
  CacheEvict,
  CacheResponse,
  InjectStampedeCache,
  InvalidOptionError,
  MemoryStore,
  responsesOf,
  StampedeCache,
  StampedeCacheModule,
  type StampedeCacheModuleOptions,
} from 'nestjs-stampede-cache';
import { map, Observable, of, take, timer } from 'rxjs';
import { MemoryServer } from '../../../lib/memory/memory-server.js';
import { bootError, keptLogger, moment } from '../apps.js';
import { crowd, listenOn, PLATFORMS, type Platform } from './http-app.js';

interface SomeResponse {
  status(code: number): SomeResponse;
  type(type: string): SomeResponse;
  header(name: string, value: string): void;
  send(body: unknown): void;
}

let runs = 0;
/** What some handlers wait for. */
let gate: Promise<unknown> = Promise.resolve();
beforeEach(() => {
  runs = 0;
  gate = Promise.resolve();
});

/** Shuts the gate until so many requests have arrived. */
function gateFor(requests: number): CanActivate {
  let arrived = 0;
  let open: (value?: unknown) => void = () => {};
  gate = new Promise((resolve) => {
    open = resolve;
  });
  return {
    canActivate() {
      arrived += 1;
      // The last one goes on to the interceptor first.
      if (arrived === requests) setTimeout(open, 10);
      return true;
    },
  };
}

class User {
  password = 'secret';
  constructor(readonly name: string) {}
}

/** Leaves a user's password out, as class-transformer's `@Exclude()` does: by the class. */
@Injectable()
class Serializer implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map((body) => (body instanceof User ? { name: body.name } : body)));
  }
}

/** Changes the body that it gets, for this one request. */
@Injectable()
class Stamping implements NestInterceptor {
  static stamps = 0;
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next
      .handle()
      .pipe(map((body) => Object.assign(body, { stamps: [...(body.stamps ?? []), ++Stamping.stamps] })));
  }
}

@Controller('things')
class Things {
  @Get('slow/:id')
  @CacheResponse('60s')
  async slow(@Param('id') id: string, @Query() query: object): Promise<object> {
    return moment({ id, query, run: ++runs });
  }

  @CacheResponse({ ttl: '60s', query: ['page'] })
  @Get('allowed')
  allowed(@Query('page') page: string): object {
    return { page, run: ++runs };
  }

  @Get('observable')
  @CacheResponse('60s')
  observable(): Observable<object> {
    return timer(5).pipe(map(() => ({ run: ++runs })));
  }

  @Get('several')
  @CacheResponse('60s')
  several(): Observable<number> {
    runs += 1;
    return timer(0, 1).pipe(take(3));
  }

  @Get('nothing')
  @CacheResponse('60s')
  nothing(): void {
    runs += 1;
  }

  @Get('empty')
  @CacheResponse('60s')
  empty(): Observable<never> {
    runs += 1;
    return of<never[]>().pipe(map((never) => never as never));
  }

  @Get('text')
  @Header('cache-control', 'max-age=5')
  @CacheResponse('60s')
  text(): string {
    return `run ${++runs}`;
  }

  @Get('code')
  @HttpCode(203)
  @CacheResponse('60s')
  code(): object {
    return { run: ++runs };
  }

  @Get('passthrough')
  @CacheResponse('60s')
  async passthrough(@Res({ passthrough: true }) response: SomeResponse): Promise<string> {
    response.status(202).type('text/plain');
    return moment(`<b>${++runs}</b>`);
  }

  @Get('redirect')
  @Redirect('/elsewhere', 302)
  @CacheResponse('60s')
  redirect(): object {
    return { url: `/run/${++runs}` };
  }

  @Get('written')
  @CacheResponse('60s')
  async written(@Res() response: SomeResponse): Promise<void> {
    await moment(undefined);
    response.send({ run: ++runs });
  }

  @Get('stream')
  @CacheResponse('60s')
  stream(): StreamableFile {
    return new StreamableFile(Readable.from([`run ${++runs}`]));
  }

  @Get('buffer')
  @CacheResponse('60s')
  buffer(): Buffer {
    return Buffer.from(`run ${++runs}`);
  }

  @Sse('events')
  @CacheResponse('60s')
  events(): Observable<{ data: string }> {
    runs += 1;
    return of({ data: 'one' }, { data: 'two' });
  }

  @Get('undefined-inside')
  @CacheResponse('60s')
  undefinedInside(): object {
    runs += 1;
    return { nested: [{ none: undefined, null: null, zero: 0 }], none: undefined };
  }

  @Get('cookie')
  @CacheResponse('60s')
  async cookie(@Res({ passthrough: true }) response: SomeResponse): Promise<object> {
    const run = ++runs;
    response.header('set-cookie', `session=${run}`);
    return moment({ run });
  }

  @Get('private')
  @CacheResponse('60s')
  @Header('cache-control', 'private, max-age=5')
  async private(): Promise<object> {
    return moment({ run: ++runs });
  }

  @Get('fails/:status')
  @CacheResponse('60s')
  async fails(@Param('status') status: string): Promise<object> {
    runs += 1;
    await gate;
    throw status === '404' ? new NotFoundException('no such thing') : new HttpException('broken', Number(status));
  }

  @Get('says/:status')
  @CacheResponse('60s')
  says(@Param('status') status: string, @Res({ passthrough: true }) response: SomeResponse): object {
    response.status(Number(status));
    return { run: ++runs };
  }

  @Post('slow/:id')
  @CacheResponse('60s')
  post(): object {
    return { run: ++runs };
  }

  @Head('headed')
  @CacheResponse('60s')
  headed(): void {
    runs += 1;
  }

  @Get('user')
  @CacheResponse('60s')
  async user(): Promise<User> {
    runs += 1;
    return moment(new User('Ada'));
  }

  @Get('serialized-inside')
  @UseInterceptors(Serializer)
  @CacheResponse('60s')
  serializedInside(): User {
    runs += 1;
    return new User('Ada');
  }

  @Get('serialized-outside')
  @CacheResponse('60s')
  @UseInterceptors(Serializer)
  serializedOutside(): User {
    runs += 1;
    return new User('Ada');
  }

  @Get('stamped')
  @CacheResponse('60s')
  @UseInterceptors(Stamping)
  async stamped(): Promise<object> {
    return moment({ run: ++runs });
  }

  @Get('chosen/:size')
  @CacheResponse({ ttl: ({ size }) => (size > 1 ? '60s' : 0), cacheIf: ({ size }) => size < 9 })
  chosen(@Param('size') size: string): { size: number } {
    runs += 1;
    return { size: Number(size) };
  }

  @Get('both/:id')
  @CacheResponse('60s')
  @CacheAside((id) => ['both', id], '60s')
  async both(@Param('id') id: string): Promise<object> {
    return { id, run: ++runs };
  }

  @Get('undecorated')
  undecorated(): object {
    return { run: ++runs };
  }
}

interface StartOptions extends StampedeCacheModuleOptions {
  /** Whether the interceptor is applied globally, too. */
  readonly global?: boolean;
  readonly guard?: CanActivate;
}

async function startOn(platform: Platform, { global = false, guard, ...options }: StartOptions = {}) {
  const logger = keptLogger();
  const { app, url } = await listenOn(
    platform,
    {
      imports: [StampedeCacheModule.forTest({ logger, ...options })],
      controllers: [Things],
      providers: global ? [{ provide: APP_INTERCEPTOR, useClass: CacheAsideInterceptor }] : [],
    },
    (app) => guard && app.useGlobalGuards(guard),
  );
  const get = async (path: string, headers: Record<string, string> = {}, method = 'GET') => {
    const response = await fetch(`${url}/things/${path}`, { headers, method, redirect: 'manual' });
    return { response, status: response.status, body: await response.text() };
  };
  const warnings = () => logger.lines.filter((line) => line.startsWith('warn'));
  return { app, get, warnings, cache: app.get(StampedeCache) };
}

describe.each(PLATFORMS)('@CacheResponse on %s', (platform) => {
  const start = (options?: StartOptions) => startOn(platform, options);

  it('S1: 50 concurrent requests run the handler once', async () => {
    const { get } = await start();
    const answers = await crowd(50, () => get('slow/1'));
    expect(runs).toBe(1);
    expect(new Set(answers.map(({ body }) => body)).size).toBe(1);
  });

  it('S1: so do requests to several processes', async () => {
    const server = new MemoryServer();
    const apps = await Promise.all([1, 2, 3].map(() => start({ store: new MemoryStore({ server }) })));
    const answers = await Promise.all(apps.flatMap(({ get }) => Array.from({ length: 10 }, () => get('slow/1'))));
    expect(runs).toBe(1);
    expect(new Set(answers.map(({ body }) => body)).size).toBe(1);
  });

  it.each([
    'observable',
    'several',
    'nothing',
    'empty',
    'text',
    'code',
    'passthrough',
    'redirect',
    'undefined-inside',
    'serialized-inside',
    'says/201',
    'buffer',
  ])('answers a hit as the miss: %s', async (path) => {
    const { get, warnings } = await start();
    const answers = [await get(path), ...(await crowd(3, () => get(path)))];
    expect(runs).toBe(1);
    const seen = answers.map(({ response, status, body }) => {
      const { date, age, 'cache-status': cacheStatus, ...headers } = Object.fromEntries(response.headers);
      return { status, body, headers };
    });
    for (const answer of seen) expect(answer).toEqual(seen[0]);
    expect(warnings()).toEqual([]);
  });

  it('answers who waited as who loaded: status, type and body', async () => {
    const { get } = await start();
    const answers = await crowd(5, () => get('passthrough'));
    for (const { response, status, body } of answers) {
      expect([status, body, response.headers.get('content-type')]).toEqual([
        202,
        '<b>1</b>',
        expect.stringContaining('text/plain'),
      ]);
    }
  });

  it('H1: paths are apart', async () => {
    const { get } = await start();
    expect(JSON.parse((await get('slow/1')).body)).toMatchObject({ id: '1' });
    expect(JSON.parse((await get('slow/2')).body)).toMatchObject({ id: '2' });
    expect(runs).toBe(2);
  });

  it.each([
    [{ authorization: 'Bearer ada' }, { authorization: 'Bearer bob' }],
    [{ cookie: 'session=ada' }, { cookie: 'session=bob' }],
    [{ 'x-api-key': 'ada' }, { 'x-api-key': 'bob' }],
  ])('H1: requests with credentials are neither stored nor answered by what is: %p', async (ada, bob) => {
    const { get } = await start();
    await crowd(3, () => get('slow/1', ada));
    await get('slow/1', bob);
    expect(runs).toBe(4);
    await get('slow/1');
    expect(runs).toBe(5);
    await get('slow/1');
    await get('slow/1', ada);
    expect(runs).toBe(6);
  });

  it('H1: nor is a request that a guard has found a user for', async () => {
    const guard = {
      canActivate(context: ExecutionContext) {
        context.switchToHttp().getRequest().user = { name: 'Ada' };
        return true;
      },
    };
    const { get } = await start({ guard });
    await get('slow/1?guarded');
    await get('slow/1?guarded');
    expect(runs).toBe(2);
  });

  it('H2: the order of the query does not matter; values do, and their order', async () => {
    const { get } = await start();
    for (const query of ['a=1&b=2', 'b=2&a=1', '&b=2&&a=1']) await get(`slow/1?${query}`);
    expect(runs).toBe(1);
    for (const query of ['a=2&b=1', 'a=1&a=2', 'a=2&a=1', 'a=1&%61=2', '%61=2&a=1', 'a[]=1&a[0]=2', 'a[0]=2&a[]=1'])
      await get(`slow/1?${query}`);
    expect(runs).toBe(8);
    for (const query of ['a=%FE', 'a=%FF', 'a=1%262', 'a=1&2']) await get(`slow/1?${query}`);
    expect(runs).toBe(12);
  });

  it('H2: parameters that are not in query share an entry', async () => {
    const { get } = await start();
    for (const query of ['page=1', 'page=1&utm_source=a', 'utm_source=b&page=1']) await get(`allowed?${query}`);
    expect(runs).toBe(1);
    for (const query of ['page=2', '', 'page=1&page=2']) await get(`allowed?${query}`);
    expect(runs).toBe(4);
  });

  it.each(['404', '500'])('H3: a thrown %s is not stored, and all who waited get it', async (status) => {
    const { get } = await start({ guard: gateFor(5) });
    const answers = await crowd(5, () => get(`fails/${status}`));
    expect(answers.map((answer) => answer.status)).toEqual(Array(5).fill(Number(status)));
    expect(new Set(answers.map(({ body }) => body)).size).toBe(1);
    expect(runs).toBe(1);
    await get(`fails/${status}`);
    expect(runs).toBe(2);
  });

  it.each(['says/404', 'says/503', 'says/206', 'says/226', 'says/304'])(
    'H3: nor is another status: %s',
    async (path) => {
      const { get } = await start();
      expect((await get(path)).status).toBe(Number(path.slice(5)));
      expect((await get(path)).status).toBe(Number(path.slice(5)));
      expect(runs).toBe(2);
    },
  );

  it('H3: Set-Cookie is for one client, and so is the body that came with it', async () => {
    const { get } = await start();
    const answers = [...(await crowd(5, () => get('cookie'))), await get('cookie')];
    expect(runs).toBe(6);
    for (const { response, body } of answers) {
      expect(response.headers.get('set-cookie')).toBe(`session=${JSON.parse(body).run}`);
    }
  });

  it('H3: a response that says that it is private is for one client', async () => {
    const { get } = await start();
    const answers = await crowd(5, () => get('private'));
    expect(new Set(answers.map(({ body }) => body)).size).toBe(5);
  });

  it('H3: what is not a GET passes through', async () => {
    const { get } = await start();
    for (let request = 0; request < 2; request += 1) await get('slow/1', {}, 'POST');
    expect(runs).toBe(2);
  });

  it('HEAD is cached, apart from GET: a handler may look at the method', async () => {
    const { get } = await start();
    for (let request = 0; request < 2; request += 1) await get('headed', {}, 'HEAD');
    expect(runs).toBe(1);
    const answers = [await get('slow/1'), await get('slow/1', {}, 'HEAD'), await get('slow/1', {}, 'HEAD')];
    expect(runs).toBe(3);
    expect(answers.map(({ body }) => body !== '')).toEqual([true, false, false]);
    expect(new Set(answers.map(({ response }) => response.headers.get('content-length'))).size).toBe(1);
  });

  it.each([
    ['written', 2, 'Things.written has @CacheResponse(), but writes its responses by itself'],
    ['stream', 2, 'Things.stream has @CacheResponse(), but answers with an instance of StreamableFile'],
    ['user', 2, 'Things.user has @CacheResponse(), but answers with an instance of User'],
    ['serialized-outside', 2, 'Things.serializedOutside has @CacheResponse(), but answers with an instance of User'],
  ])('%s is answered but not stored, and one warning says why', async (path, times, warning) => {
    const { get, warnings } = await start();
    const answers = [...(await crowd(times, () => get(path))), await get(path)];
    expect(runs).toBe(times + 1);
    expect(answers.every(({ status, body }) => status === 200 && body !== '')).toBe(true);
    expect(warnings()).toEqual([expect.stringContaining(warning)]);
  });

  it('events are not stored', async () => {
    const { get } = await start();
    const answers = [await get('events'), await get('events')];
    expect(runs).toBe(2);
    expect(answers[1]?.body).toContain('data: two');
  });

  it('a hit never shows more than a miss, with a serializer outside or inside', async () => {
    const { get } = await start();
    for (const path of ['serialized-inside', 'serialized-outside']) {
      for (let request = 0; request < 3; request += 1) {
        expect(JSON.parse((await get(path)).body)).toEqual({ name: 'Ada' });
      }
    }
  });

  it('an interceptor outside changes the body of its own request only', async () => {
    const { get } = await start();
    const answers = [...(await crowd(3, () => get('stamped'))), await get('stamped')];
    expect(runs).toBe(1);
    const stamps = answers.map(({ body }) => JSON.parse(body).stamps);
    expect(stamps.every((list) => list.length === 1)).toBe(true);
    expect(new Set(stamps.flat()).size).toBe(4);
  });

  it('asks ttl and cacheIf about the body', async () => {
    const { get } = await start();
    for (const size of [1, 1, 5, 5, 9, 9]) await get(`chosen/${size}`);
    expect(runs).toBe(5);
  });

  it('N1: a guard denies a hit as it denies a miss', async () => {
    const guard = {
      canActivate: (context: ExecutionContext) => context.switchToHttp().getRequest().headers['x-real-ip'] !== 'denied',
    };
    const { get } = await start({ guard });
    for (const path of ['slow/1', 'allowed']) {
      await get(path);
      expect((await get(path, { 'x-real-ip': 'denied' })).status).toBe(403);
      expect((await get(path)).status).toBe(200);
    }
    expect(runs).toBe(2);
  });

  it('works together with @CacheAside on one handler', async () => {
    const { get, cache } = await start();
    await get('both/1');
    await get('both/1');
    await get('both/1', { cookie: 'session=ada' });
    expect(runs).toBe(1);
    expect(await cache.get('both:1')).toEqual({ id: '1', run: 1 });
  });

  it('applied globally as well it runs once, and leaves other handlers alone', async () => {
    const { get } = await start({ global: true });
    await crowd(5, () => get('slow/1'));
    expect(runs).toBe(1);
    await get('undecorated');
    await get('undecorated');
    expect(runs).toBe(3);
  });

  it('versions of one URL are apart', async () => {
    @Controller('versioned')
    class Versioned {
      @Get()
      @Version('1')
      @CacheResponse('60s')
      first(): string {
        return 'first';
      }
      @Get()
      @Version('2')
      @CacheResponse('60s')
      second(): string {
        return 'second';
      }
    }
    const { url } = await listenOn(
      platform,
      { imports: [StampedeCacheModule.forTest()], controllers: [Versioned] },
      (app) => app.enableVersioning({ type: VersioningType.HEADER, header: 'x-version' }),
    );
    const get = async (version: string) =>
      (await fetch(`${url}/versioned`, { headers: { 'x-version': version } })).text();
    expect([await get('1'), await get('2'), await get('1')]).toEqual(['first', 'second', 'first']);
  });

  it('uses the cache that it names', async () => {
    @Controller('named')
    class Named {
      constructor(@InjectStampedeCache('pages') readonly pages: StampedeCache) {}
      @Get()
      @CacheResponse({ ttl: '60s', cache: 'pages' })
      page(@Req() _request: unknown): object {
        return { run: ++runs };
      }
    }
    const { app, url } = await listenOn(platform, {
      imports: [StampedeCacheModule.forTest({ name: 'pages' })],
      controllers: [Named],
    });
    const keys: string[] = [];
    app.get(Named).pages.events.subscribe((event) => event.type === 'fill' && keys.push(event.key));
    await fetch(`${url}/named?b=2&a=1`);
    await fetch(`${url}/named?a=1&b=2`);
    expect(runs).toBe(1);
    expect(keys).toEqual(['GET:127.0.0.1:Named.page:/named:a=1&b=2:~:@port%3Aown']);
    // Applied globally as well, the default cache leaves it alone.
    const global = await listenOn(platform, {
      imports: [StampedeCacheModule.forTest({ name: 'pages' }), StampedeCacheModule.forTest()],
      controllers: [Named],
      providers: [{ provide: APP_INTERCEPTOR, useClass: CacheAsideInterceptor }],
    });
    global.app.get(StampedeCache).events.subscribe(() => keys.push('default'));
    await fetch(`${global.url}/named`);
    expect([runs, keys.length]).toEqual([2, 1]);
    expect((await bootError({ controllers: [Named] })).message).toContain("forRoot({ name: 'pages' }) imported?");
  });

  it('N2: a controller that two modules have, each with a cache for itself, answers from theirs', async () => {
    @Controller('shared')
    class Shared {
      @CacheResponse('60s')
      @Get()
      page(): number {
        runs += 1;
        return runs;
      }
    }
    const feature = () => StampedeCacheModule.forTest({ isGlobal: false });
    @Module({ imports: [feature()], controllers: [Shared] })
    class First {}
    @Module({ imports: [feature()], controllers: [Shared] })
    class Second {}
    const { url } = await listenOn(platform, {
      imports: [
        StampedeCacheModule.forTest(),
        First,
        Second,
        RouterModule.register([
          { path: 'first', module: First },
          { path: 'second', module: Second },
        ]),
      ],
      providers: [{ provide: APP_INTERCEPTOR, useClass: CacheAsideInterceptor }],
    });
    const answers: string[] = [];
    for (const module of ['first', 'second', 'first', 'second'])
      answers.push(await (await fetch(`${url}/${module}/shared`)).text());
    expect(answers).toEqual(['1', '2', '1', '2']);
  });

  it.each([undefined, CacheAsideInterceptor, class extends CacheAsideInterceptor {}])(
    'N2: a module that has a cache for itself answers from that one; applied globally: %p',
    async (global) => {
      @Controller('own')
      class Own {
        @CacheResponse({ ttl: '60s', evictBy: () => 'page' })
        @Get()
        page(): number {
          runs += 1;
          return runs;
        }

        @CacheEvict(() => responsesOf('page'))
        @Post()
        async change(): Promise<void> {}
      }
      @Module({ imports: [StampedeCacheModule.forTest({ isGlobal: false })], controllers: [Own] })
      class Feature {}
      const { url } = await listenOn(platform, {
        imports: [StampedeCacheModule.forTest(), Feature],
        providers: global ? [{ provide: APP_INTERCEPTOR, useClass: global }] : [],
      });
      const page = async () => (await fetch(`${url}/own`)).text();
      expect([await page(), await page()]).toEqual(['1', '1']);
      await fetch(`${url}/own`, { method: 'POST' });
      expect(await page()).toBe('2');
    },
  );

  it.each([Scope.REQUEST, Scope.TRANSIENT])(
    'N8: an interceptor that is made anew (scope %i) answers, too',
    async (scope) => {
      @Injectable({ scope })
      class Scoped extends CacheAsideInterceptor {}
      @UseInterceptors(Scoped)
      @Controller('scoped')
      class Own {
        @CacheResponse('60s')
        @Get()
        page(): number {
          runs += 1;
          return runs;
        }
      }
      for (const provider of [{ useClass: Scoped }, { scope, useClass: CacheAsideInterceptor }]) {
        const { url } = await listenOn(platform, {
          imports: [StampedeCacheModule.forTest()],
          controllers: [Own],
          providers: [{ provide: APP_INTERCEPTOR, ...provider }],
        });
        runs = 0;
        expect(await (await fetch(`${url}/scoped`)).text()).toBe('1');
        expect(await (await fetch(`${url}/scoped`)).text()).toBe('1');
      }
    },
  );

  it.each<[string, unknown]>([
    ['ttl', '60 secons'],
    ['ttl', {}],
    ['query', { ttl: 1, query: 'page' }],
    ['vari', { ttl: 1, vari: [] }],
    ['cache', { ttl: 1, cache: '' }],
  ])('T1: a wrong %s is an error at decoration: %p', (option, options) => {
    expect(() => CacheResponse(options as never)).toThrow(InvalidOptionError);
    expect(() => CacheResponse(options as never)).toThrow(expect.objectContaining({ option }));
  });
});
