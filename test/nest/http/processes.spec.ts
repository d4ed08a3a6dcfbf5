/** Several applications, each with its own connections to one Redis, as processes are: they share loads and answers. */
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, Param, Res } from '@nestjs/common';
import { CacheResponse, StampedeCacheModule } from 'nestjs-stampede-cache';
import { eventually } from '../../support/eventually.js';
import { type RedisServer, startRedis } from '../../support/redis-server.js';
import { keptLogger, moment } from '../apps.js';
import { listenOn, PLATFORMS, type Platform, raw } from './http-app.js';

interface SomeResponse {
  status(code: number): unknown;
  header(name: string, value: string): unknown;
}

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

let runs = 0;
beforeEach(() => {
  runs = 0;
});

@Controller('pages')
class Pages {
  @Get('page/:id')
  @CacheResponse('60s')
  async page(@Param('id') id: string, @Res({ passthrough: true }) response: SomeResponse): Promise<object> {
    const run = ++runs;
    response.status(203);
    response.header('content-language', 'eo');
    return moment({ id, run });
  }
  @Get('bytes/:id')
  @CacheResponse('60s')
  async bytes(): Promise<Buffer> {
    runs += 1;
    return moment(Buffer.from([0, 0xff, 0xfe, 0x80]));
  }
  @Get('private/:id')
  @CacheResponse('60s')
  async private(@Res({ passthrough: true }) response: SomeResponse): Promise<object> {
    const run = ++runs;
    response.header('set-cookie', `run=${run}`);
    return moment({ run });
  }
  @Get('stale/:id')
  @CacheResponse({ ttl: '1s', staleWhileRevalidate: '60s' })
  async stale(): Promise<object> {
    return moment({ run: ++runs });
  }
}

describe.each(PLATFORMS)('on %s', (platform: Platform) => {
  let namespace = 0;

  async function startSeveral(applications: number) {
    namespace += 1;
    // On a busy machine three applications in one process keep each other waiting; Redis isn't away for that.
    const options = {
      commandTimeout: '15s' as const,
      connection: redis.url,
      namespace: `${platform}-${namespace}`,
      logger: keptLogger(),
    };
    const started = await Promise.all(
      Array.from({ length: applications }, () =>
        listenOn(platform, { imports: [StampedeCacheModule.forRoot(options)], controllers: [Pages] }),
      ),
    );
    const get = (which: number, path: string) => raw(started[which]?.port ?? 0, path);
    const getAll = (each: number, path: string) =>
      Promise.all(started.flatMap((_, which) => Array.from({ length: each }, () => get(which, path))));
    return { get, getAll };
  }

  it('S1: 50 requests to each of three run the handler once, and all get its status, headers and body', async () => {
    const { getAll } = await startSeveral(3);
    const answers = await getAll(50, '/pages/page/1');
    expect(runs).toBe(1);
    expect(answers).toHaveLength(150);
    for (const { status, headers, json } of answers) {
      expect([status, headers['content-language'], json]).toEqual([203, 'eo', { id: '1', run: 1 }]);
    }
    expect(answers.filter(({ headers }) => String(headers['cache-status']).includes('stored'))).toHaveLength(1);
  });

  it('bytes are the same bytes', async () => {
    const { get } = await startSeveral(2);
    const answers = [await get(0, '/pages/bytes/1'), await get(1, '/pages/bytes/1')];
    expect(runs).toBe(1);
    expect(answers[1]?.body).toBe(answers[0]?.body);
    expect(answers[1]?.headers['content-type']).toBe(answers[0]?.headers['content-type']);
  });

  it('what is for one client is for none of the others', async () => {
    const { getAll } = await startSeveral(2);
    const answers = await getAll(5, '/pages/private/1');
    expect(runs).toBe(10);
    for (const { headers, json } of answers) expect(headers['set-cookie']).toEqual([`run=${json.run}`]);
  });

  it("T3: an answer's age is told by the clock of Redis", async () => {
    const { get } = await startSeveral(2);
    await get(0, '/pages/page/2');
    const now = jest.spyOn(Date, 'now').mockImplementation(() => 4_000_000_000_000);
    try {
      const { headers } = await get(1, '/pages/page/2');
      expect(Number(headers['age'])).toBeLessThan(30);
      expect(headers['cache-status']).toMatch(/^stampede; hit; ttl=[3-6]\d$/);
    } finally {
      now.mockRestore();
    }
  });

  it('T2: a stale answer is refreshed for all', async () => {
    const { get } = await startSeveral(2);
    await get(0, '/pages/stale/1');
    await eventually(async () => Number((await get(1, '/pages/stale/1')).json.run) > 1, { within: 20_000 });
    const { json } = await get(0, '/pages/stale/1');
    expect(json.run).toBeGreaterThan(1);
  });
});
