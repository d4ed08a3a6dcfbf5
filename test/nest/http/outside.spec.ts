/** Interceptors outside the cache that ask for an answer again, or give up on it, as Nest's docs have them do. */
import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  type NestInterceptor,
  Param,
  RequestTimeoutException,
  Res,
  ServiceUnavailableException,
} from '@nestjs/common';
import { APP_INTERCEPTOR } from '@nestjs/core';
import { CacheAsideInterceptor, CacheResponse, StampedeCacheModule } from 'nestjs-stampede-cache';
import { firstValueFrom, type Observable, ReplaySubject, race, retry, Subject, throwError } from 'rxjs';
import { mergeMap } from 'rxjs/operators';
import { moment } from '../apps.js';
import { crowd, listenOn, PLATFORMS, raw } from './http-app.js';

let runs = 0;
let started = new Subject<void>();
let finish = new ReplaySubject<void>(1);
beforeEach(() => {
  runs = 0;
  started = new Subject();
  finish = new ReplaySubject(1);
});

class Retry implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(retry(1));
  }
}

const impatience = new Subject<void>();

/** A time limit, which ends when the test says so, for who says to be impatient. */
class TimeLimit implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    if (context.switchToHttp().getRequest().headers['user-agent'] !== 'impatient') return next.handle();
    const late = impatience.pipe(mergeMap(() => throwError(() => new RequestTimeoutException())));
    return race(next.handle(), late);
  }
}

@Controller()
class Pages {
  @Get('shaky')
  @CacheResponse('60s')
  async shaky(): Promise<object> {
    runs += 1;
    if (runs === 1) throw await moment(new ServiceUnavailableException());
    return moment({ run: runs });
  }

  @Get('slow/:id')
  @CacheResponse('60s')
  async slow(
    @Param('id') id: string,
    @Res({ passthrough: true }) response: { header(name: string, value: string): unknown },
  ): Promise<object> {
    runs += 1;
    response.header('content-language', 'de');
    started.next();
    await firstValueFrom(finish);
    response.header('etag', '"late"');
    return { id, run: runs };
  }

  @Get('personal/:when')
  @CacheResponse('60s')
  async personal(
    @Param('when') when: string,
    @Res({ passthrough: true }) response: { header(name: string, value: string): unknown },
  ): Promise<object> {
    const run = ++runs;
    if (when === 'before') response.header('set-cookie', `run=${run}`);
    started.next();
    await firstValueFrom(finish);
    if (when === 'after') response.header('set-cookie', `run=${run}`);
    return { run };
  }
}

describe.each(PLATFORMS)('on %s', (platform) => {
  const start = (...interceptors: (new () => NestInterceptor)[]) =>
    listenOn(platform, {
      imports: [StampedeCacheModule.forTest()],
      controllers: [Pages],
      providers: [
        ...interceptors.map((useClass) => ({ provide: APP_INTERCEPTOR, useClass })),
        { provide: APP_INTERCEPTOR, useClass: CacheAsideInterceptor },
      ],
    });

  it('S1: who tries again after a failure goes through the cache again', async () => {
    const { port } = await start(Retry);
    const answers = await crowd(20, () => raw(port, '/shaky'));
    expect(new Set(answers.map(({ body }) => body))).toEqual(new Set(['{"run":2}']));
    expect(runs).toBe(2);
    expect((await raw(port, '/shaky')).headers['cache-status']).toMatch(/^stampede; hit/);
  });

  it('S1: a time limit of one request takes nothing from those who wait with it', async () => {
    const { port } = await start(TimeLimit);
    const begun = firstValueFrom(started);
    const impatient = raw(port, '/slow/1', { headers: { 'user-agent': 'impatient' } });
    await begun;
    const others = crowd(5, () => raw(port, '/slow/1'));
    impatience.next();
    const late = await impatient;
    expect([late.status, late.headers['content-language']]).toEqual([408, undefined]);
    // They have asked before the handler is done, or else they find what it has left.
    finish.next();
    for (const { status, json, headers } of await others) {
      expect([status, json, headers['content-language'], headers['etag']]).toEqual([
        200,
        { id: '1', run: 1 },
        'de',
        '"late"',
      ]);
    }
    expect(runs).toBe(1);
    expect((await raw(port, '/slow/1')).headers['cache-status']).toMatch(/^stampede; hit/);
  });
  it.each(['before', 'after'])(
    'H3: what is for one client stays so when a time limit ends: a cookie %s it',
    async (when) => {
      const { port } = await start(TimeLimit);
      const begun = firstValueFrom(started);
      const impatient = raw(port, `/personal/${when}`, { headers: { 'user-agent': 'impatient' } });
      await begun;
      const others = crowd(3, () => raw(port, `/personal/${when}`));
      impatience.next();
      expect(await impatient).toMatchObject({ status: 408 });
      finish.next();
      const runsOfOthers = (await others).map(({ json, headers }) => {
        expect(headers['set-cookie']).toEqual([`run=${json.run}`]);
        return json.run;
      });
      expect(new Set(runsOfOthers).size).toBe(3);
      expect(runsOfOthers).not.toContain(1);
    },
  );
});
