/** Criterion: the answers of two users never mix, be they refusals, with cookies, of a session, or for some roles only. */
import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  type CallHandler,
  ClassSerializerInterceptor,
  Controller,
  type ExecutionContext,
  ForbiddenException,
  Get,
  HttpException,
  type NestInterceptor,
  Req,
  Res,
  type Type,
  UseInterceptors,
} from '@nestjs/common';
import { APP_INTERCEPTOR, Reflector } from '@nestjs/core';
import { Exclude, Expose } from 'class-transformer';
import { CacheAsideInterceptor, CacheResponse, StampedeCacheModule } from 'nestjs-stampede-cache';
import { map } from 'rxjs';
import { moment } from '../apps.js';
import { crowd, listenOn, PLATFORMS, raw } from './http-app.js';
import { type SeenRequest, type SomeResponse, start } from './mixing-app.js';

let runs = 0;
beforeEach(() => {
  runs = 0;
});

describe.each(PLATFORMS)('on %s', (platform) => {
  it('one client is not refused for another', async () => {
    @Controller()
    class Refusing {
      @Get('forbidden')
      @CacheResponse('60s')
      async forbidden(@Req() { headers }: SeenRequest): Promise<object> {
        runs += 1;
        await moment(undefined);
        if (headers['x-real-ip'] === 'bad') throw new ForbiddenException('not you');
        return { fine: true };
      }
      @Get('limited')
      @CacheResponse('60s')
      async limited(@Req() { headers }: SeenRequest): Promise<object> {
        runs += 1;
        await moment(undefined);
        if (headers['x-real-ip'] === 'bad') throw new HttpException('too many', 429);
        return { fine: true };
      }
      @Get('conditional')
      @CacheResponse('60s')
      async conditional(@Req() { headers }: SeenRequest, @Res({ passthrough: true }) response: SomeResponse) {
        await moment(undefined);
        if (headers['x-real-ip'] !== 'bad') return { fine: true };
        response.status(304);
        return undefined;
      }
    }
    const { get } = await start(platform, [Refusing]);
    for (const path of ['/forbidden', '/limited', '/conditional']) {
      const good = await crowd(6, async (index) => {
        const headers: Record<string, string> = index % 2 === 0 ? { 'x-real-ip': 'bad' } : {};
        const { status } = await get(path, { headers });
        return index % 2 === 0 ? 200 : status;
      });
      expect(good).toEqual(Array(6).fill(200));
    }
  });

  it('a session that changes, and a cookie that is written at the last moment', async () => {
    @Controller()
    class Visits {
      @Get('counts')
      @CacheResponse('60s')
      counts(@Req() request: { session: { visits?: number } }): object {
        runs += 1;
        request.session.visits = (request.session.visits ?? 0) + 1;
        return { run: runs };
      }
      @Get('reads')
      @CacheResponse('60s')
      reads(): object {
        return { run: ++runs };
      }
      @Get('for-all')
      @CacheResponse({ ttl: '60s', shared: true })
      forAll(): object {
        return { run: ++runs };
      }
      @Get('by-cookie')
      @CacheResponse({ ttl: '60s', vary: ['cookie', 'authorization'] })
      byCookie(): object {
        return { run: ++runs };
      }
    }
    const { get, warnings } = await start(platform, [Visits], (app) => {
      const begin = (request: { session?: object }, _response: unknown, next: () => void) => {
        request.session = {};
        next();
      };
      if (platform === 'Express') app.use(begin);
      else app.getHttpAdapter().getInstance().addHook('onRequest', begin);
    });
    for (const run of [1, 2]) expect((await get('/counts')).json.run).toBe(run);
    // The handler may answer with the session's id, also with that of one that has just begun.
    const answers = [await get('/reads'), await get('/reads')];
    expect(runs).toBe(4);
    for (const { headers } of answers)
      expect([headers['cache-status'], headers['cache-control']]).toEqual([
        'stampede; fwd=bypass; detail="session"',
        undefined,
      ]);
    for (let visit = 0; visit < 2; visit += 1) expect((await get('/for-all')).json.run).toBe(5);
    for (const cookie of ['a=1', 'a=2', 'a=1', 'a=2']) await get('/by-cookie', { headers: { cookie } });
    for (let visit = 0; visit < 2; visit += 1) await get('/by-cookie', { headers: { authorization: 'ada' } });
    expect(runs).toBe(5 + 2 + 2);
    expect(warnings()).toEqual(
      ['counts', 'reads', 'byCookie'].map((method) =>
        expect.stringContaining(`Visits.${method} has @CacheResponse(), but its requests have a session`),
      ),
    );
  });

  it('a cookie that is set before: neither it nor what is made of it is for others', async () => {
    @Controller()
    class Visitors {
      @Get('visitor')
      @CacheResponse('60s')
      visitor(@Req() request: { raw?: { visitor?: string }; visitor?: string }): object {
        return { visitor: (request.raw ?? request).visitor, run: ++runs };
      }
      @Get('for-all')
      @CacheResponse({ ttl: '60s', shared: true })
      forAll(): object {
        return { run: ++runs };
      }
    }
    let visitors = 0;
    const { get, warnings } = await start(platform, [Visitors], (app) =>
      app.use(
        (
          request: { visitor?: string; headers: Record<string, string> },
          response: { setHeader(name: string, value: string): void },
          next: () => void,
        ) => {
          visitors += 1;
          request.visitor = `v${visitors}`;
          response.setHeader('Set-Cookie', `visitor=v${visitors}`);
          next();
        },
      ),
    );
    const answers = [...(await crowd(4, () => get('/visitor'))), await get('/visitor')];
    for (const { headers, json } of answers) {
      expect(headers['set-cookie']).toEqual([`visitor=${json.visitor}`]);
      expect(headers['cache-status']).toBe('stampede; fwd=bypass; detail="set-cookie"');
    }
    expect(runs).toBe(5);
    for (let visit = 0; visit < 2; visit += 1) {
      const { headers, json } = await get('/for-all');
      expect([json.run, headers['cache-control']]).toEqual([6, 'private, max-age=60']);
    }
    expect(warnings()).toEqual([
      expect.stringContaining(
        'Visitors.visitor has @CacheResponse(), but is answered with a cookie that was set before',
      ),
    ]);
  });

  it('a cookie that a hook has put by for the end', async () => {
    if (platform === 'Express') return;
    @Controller()
    class Visitors {
      @Get()
      @CacheResponse('60s')
      visitor(): object {
        return { run: ++runs };
      }
    }
    const { get } = await start(platform, [Visitors], async (app) => {
      await (app as unknown as { register(plugin: unknown): Promise<void> }).register(import('@fastify/cookie'));
      app
        .getHttpAdapter()
        .getInstance()
        .addHook('onRequest', async (_: unknown, reply: { setCookie(name: string, value: string): void }) => {
          reply.setCookie('visitor', `v${runs}`);
        });
    });
    for (let visit = 0; visit < 2; visit += 1)
      expect((await get('/')).headers['cache-status']).toBe('stampede; fwd=bypass; detail="set-cookie"');
    expect(runs).toBe(2);
  });

  it("cookies by the platform's own means", async () => {
    @Controller()
    class Baker {
      @Get()
      @CacheResponse('60s')
      async bake(@Res({ passthrough: true }) response: { cookie(name: string, value: string): void }): Promise<object> {
        const run = ++runs;
        response.cookie('session', `s${run}`);
        return moment({ run });
      }
    }
    const { get } = await start(platform, [Baker], async (app) => {
      if (platform === 'Fastify')
        await (app as unknown as { register(plugin: unknown): Promise<void> }).register(import('@fastify/cookie'));
    });
    const answers = [...(await crowd(4, () => get('/'))), await get('/')];
    for (const { headers, json } of answers) expect(String(headers['set-cookie'])).toMatch(`session=s${json.run}`);
    expect(new Set(answers.map(({ json }) => json.run)).size).toBe(5);
  });

  describe('a hit never shows more than a miss', () => {
    class User {
      name = 'Ada';
      @Exclude() password = 'secret';
      @Expose({ groups: ['admin'] }) salary = 7;
    }
    class RoleSerializer extends ClassSerializerInterceptor {
      override getContextOptions(context: ExecutionContext) {
        const role = context.switchToHttp().getRequest().headers['x-role'];
        return { ...super.getContextOptions(context), groups: role ? [role] : [] };
      }
    }
    @Controller()
    class Users {
      @Get('inside')
      @UseInterceptors(RoleSerializer)
      @CacheResponse('60s')
      inside(): User {
        runs += 1;
        return new User();
      }
      @Get('outside')
      @CacheResponse('60s')
      @UseInterceptors(RoleSerializer)
      outside(): User {
        runs += 1;
        return new User();
      }
      @Get('inside-by-role')
      @UseInterceptors(RoleSerializer)
      @CacheResponse({ ttl: '60s', vary: ['x-role'] })
      insideByRole(): User {
        runs += 1;
        return new User();
      }
      @Get('alone')
      @CacheResponse('60s')
      alone(): User {
        runs += 1;
        return new User();
      }
    }

    class Json extends User {
      toJSON(): object {
        return { ...this };
      }
    }
    class Year implements NestInterceptor {
      intercept(_context: ExecutionContext, next: CallHandler) {
        return next.handle().pipe(map(({ at }: { at: Date }) => ({ at: at.getFullYear() })));
      }
    }
    class Size implements NestInterceptor {
      intercept(_context: ExecutionContext, next: CallHandler) {
        return next.handle().pipe(map(({ size }: Map<string, number>) => ({ size })));
      }
    }
    const year = { at: 2001 };

    it.each<[string, () => unknown, Type<NestInterceptor>, unknown, string]>([
      ['an instance with a toJSON', () => new Json(), ClassSerializerInterceptor, { name: 'Ada' }, 'Json'],
      ['one in an object', () => ({ a: new Json() }), ClassSerializerInterceptor, { a: { name: 'Ada' } }, 'Json'],
      ['one in an array', () => [[new Json()]], ClassSerializerInterceptor, [[{ name: 'Ada' }]], 'Json'],
      ['a date', () => ({ at: new Date('2001-06-01') }), Year, year, 'Date'],
      ['a map', () => new Map([['a', 1]]), Size, { size: 1 }, 'Map'],
    ])('a serializer outside, and %s', async (_what, make, interceptor, expected, name) => {
      @Controller()
      class Outside {
        @Get()
        @CacheResponse('60s')
        @UseInterceptors(interceptor)
        make(): unknown {
          runs += 1;
          return make();
        }
      }
      const { get, warnings } = await start(platform, [Outside]);
      const answers = [...(await crowd(3, () => get('/'))), await get('/')];
      for (const { status, json } of answers) expect([status, json]).toEqual([200, expected]);
      expect(runs).toBe(4);
      expect(warnings()).toEqual([
        expect.stringContaining(
          `Outside.make has @CacheResponse(), but answers with an instance of ${name}, and only plain`,
        ),
      ]);
    });

    it.each([true, false])('a codec that knows dates: %s', async (knowsDates) => {
      const codec = {
        encode: (value: unknown) =>
          JSON.stringify(value, function (this: Record<string, unknown>, name, json) {
            const inner = this[name];
            return knowsDates && inner instanceof Date ? { $date: inner.getTime() } : json;
          }),
        decode: (text: string) =>
          JSON.parse(text, (_, inner) => (typeof inner?.$date === 'number' ? new Date(inner.$date) : inner)),
      };
      @Controller()
      class Dated {
        @Get('date')
        @CacheResponse({ ttl: '60s', codec })
        @UseInterceptors(Year)
        date(): object {
          return { at: new Date('2001-06-01'), run: ++runs };
        }
        @Get('user')
        @CacheResponse({ ttl: '60s', codec })
        @UseInterceptors(ClassSerializerInterceptor)
        user(): object {
          runs += 1;
          return { user: new Json() };
        }
      }
      const { get } = await start(platform, [Dated]);
      for (let request = 0; request < 3; request += 1) expect((await get('/date')).json).toEqual(year);
      expect(runs).toBe(knowsDates ? 1 : 3);
      for (let request = 0; request < 3; request += 1)
        expect((await get('/user')).json).toEqual({ user: { name: 'Ada' } });
      expect(runs).toBe((knowsDates ? 1 : 3) + 3);
    });

    const roles = ['admin', undefined, 'editor', 'admin', undefined, 'admin', 'editor'];
    const ask = async (get: Awaited<ReturnType<typeof start>>['get'], path: string, role: string | undefined) =>
      (await get(path, { headers: role === undefined ? {} : { 'x-role': role } })).json;
    const allowed = (role: string | undefined) => (role === 'admin' ? { name: 'Ada', salary: 7 } : { name: 'Ada' });

    it.each([
      ['/inside', 5 + 1],
      ['/outside', 7],
      ['/inside-by-role', 3],
    ])('with a serializer and groups per role: %s', async (path, expected) => {
      const { get } = await start(platform, [Users]);
      for (const role of roles) expect(await ask(get, path, role)).toEqual(allowed(role));
      expect(runs).toBe(expected);
      const together = await Promise.all(roles.map((role) => ask(get, path, role)));
      expect(together).toEqual(roles.map(allowed));
    });

    it.each(['serializer first', 'cache first'])('with a global serializer: %s', async (order) => {
      const { app, port } = await listenOn(platform, {
        imports: [StampedeCacheModule.forTest()],
        controllers: [Users],
        providers: (order === 'cache first' ? [CacheAsideInterceptor, RoleSerializer] : [RoleSerializer]).map(
          (useClass) => ({
            provide: APP_INTERCEPTOR,
            useClass,
          }),
        ),
      });
      expect(app.get(Reflector)).toBeDefined();
      for (const role of roles) {
        const { json } = await raw(port, '/alone', { headers: role === undefined ? {} : { 'x-role': role } });
        expect(json).toEqual(allowed(role));
      }
      expect(runs).toBe(order === 'cache first' ? 5 + 1 : 7);
    });
  });
});
