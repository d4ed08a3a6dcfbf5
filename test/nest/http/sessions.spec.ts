/** Users and sessions where middleware leaves them, on platforms that have two requests, and of visitors who are new. */
import { beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, type MiddlewareConsumer, Module, type NestMiddleware, Req } from '@nestjs/common';
import { CacheResponse, StampedeCacheModule } from 'nestjs-stampede-cache';
import { listenOn, PLATFORMS, type Platform, raw } from './http-app.js';

interface Session {
  id?: string;
  sessionId?: string;
  isNew?: boolean;
  seen?: number;
}

interface Seen {
  user?: string | undefined;
  session?: Session | undefined;
}

let runs = 0;
/** Who sits at the address that a request comes from. */
let who: Seen = {};
beforeEach(() => {
  runs = 0;
  who = {};
});

const seenOf = (request: Seen & { raw?: Seen }): Seen => request.raw ?? request;
const answer = (request: Seen) => ({ user: seenOf(request).user, session: seenOf(request).session, run: ++runs });

@Controller()
class Pages {
  @Get('default')
  @CacheResponse('60s')
  byDefault(@Req() request: Seen): object {
    return answer(request);
  }

  @Get('by-cookie')
  @CacheResponse({ ttl: '60s', vary: ['cookie'] })
  byCookie(@Req() request: Seen): object {
    return answer(request);
  }

  @Get('counts')
  @CacheResponse({ ttl: '60s', vary: ['cookie'] })
  counts(@Req() request: Seen): object {
    const { session } = seenOf(request);
    if (session) session.seen = (session.seen ?? 0) + 1;
    return { run: ++runs };
  }
}

/** As passport and express-session are applied; on Fastify it is given Node's own request. */
class Who implements NestMiddleware {
  use(request: Seen, _response: unknown, next: () => void): void {
    Object.assign(request, who);
    next();
  }
}

@Module({ imports: [StampedeCacheModule.forTest()], controllers: [Pages] })
class App {
  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(Who).forRoutes(Pages);
  }
}

describe.each(PLATFORMS)('on %s', (platform: Platform) => {
  const start = async () => {
    const { port } = await listenOn(platform, { imports: [App] });
    return (path: string, cookie?: string) => raw(port, path, { headers: cookie === undefined ? {} : { cookie } });
  };

  it('H1: a user, or a session, that a middleware of Nest has set', async () => {
    const get = await start();
    for (const user of ['ada', 'bob', 'ada']) {
      who = { user };
      const { json, headers } = await get('/default');
      expect([json.user, headers['cache-status']]).toEqual([user, 'stampede; fwd=bypass; detail="user"']);
    }
    for (const id of ['1', '2', '1']) {
      who = { session: { id } };
      const { json, headers } = await get('/default');
      expect([json.session, headers['cache-status']]).toEqual([{ id }, 'stampede; fwd=bypass; detail="session"']);
    }
    expect(runs).toBe(6);
  });

  it('H3: a session of such a middleware that the handler changes', async () => {
    const get = await start();
    for (let visit = 0; visit < 2; visit += 1) {
      who = { session: {} };
      expect((await get('/counts', 'theme=dark')).headers['cache-status']).toBe(
        'stampede; fwd=bypass; detail="private"',
      );
    }
    expect(runs).toBe(2);
  });

  it.each<[string, (id: string) => Session]>([
    ['express-session', (id) => ({ id })],
    ['@fastify/session', (id) => ({ sessionId: id })],
    ['cookie-session', () => ({ isNew: true })],
  ])('H1: a session that has just begun is not told by a cookie that was there before: %s', async (_name, make) => {
    const get = await start();
    for (const id of ['s1', 's2', 's1']) {
      who = { session: make(id) };
      const { json, headers } = await get('/by-cookie', 'theme=dark');
      expect([json.session, headers['cache-status']]).toEqual([make(id), 'stampede; fwd=bypass; detail="session"']);
    }
    expect(runs).toBe(3);
  });

  it('but one whose id is in the cookie is told by that', async () => {
    const get = await start();
    for (const id of ['s1', 's2', 's1']) {
      for (const session of [{ id }, { sessionId: id }, {}]) {
        who = { session };
        const { headers } = await get('/by-cookie', `theme=dark; sid=s%3A${id}.c2lnbmF0dXJl`);
        expect(headers['cache-status']).not.toContain('bypass');
      }
    }
    expect(runs).toBe(2);
  });
});
