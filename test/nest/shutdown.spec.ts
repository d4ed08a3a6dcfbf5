import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import {
  type BeforeApplicationShutdown,
  Controller,
  Get,
  Injectable,
  Module,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  Put,
} from '@nestjs/common';
import { Redis } from 'ioredis';
import {
  CacheAside,
  CacheEvict,
  LockService,
  MemoryStore,
  StampedeCache,
  StampedeCacheModule,
  stampedeCacheToken,
} from 'nestjs-stampede-cache';
import { MemoryServer } from '../../lib/memory/memory-server.js';
import { eventually } from '../support/eventually.js';
import { startProcesses, type WorkerProcess } from '../support/processes.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { bootError, keptLogger, listen, startApp } from './apps.js';

/** Notes the steps of closing, and what happens meanwhile. */
let steps: string[] = [];

@Injectable()
class Steps implements OnModuleDestroy, BeforeApplicationShutdown, OnApplicationShutdown {
  onModuleDestroy(): void {
    steps.push('onModuleDestroy');
  }
  beforeApplicationShutdown(): void {
    steps.push('beforeApplicationShutdown');
  }
  onApplicationShutdown(): void {
    steps.push('onApplicationShutdown');
  }
}

@Controller('things')
class Things {
  finish = () => {};

  @Get()
  @CacheAside(() => 'things', '60s')
  async find(): Promise<string> {
    await new Promise<void>((resolve) => {
      this.finish = resolve;
    });
    steps.push('loaded');
    return 'things';
  }

  @Put()
  @CacheEvict(() => 'things')
  async update(): Promise<string> {
    await new Promise<void>((resolve) => {
      this.finish = resolve;
    });
    return 'updated';
  }
}

function shared() {
  const server = new MemoryServer();
  return { server, store: () => new MemoryStore({ server }) };
}

describe('N4: app.close()', () => {
  it('waits for a load before anything global closes, stores its value and releases its lock', async () => {
    steps = [];
    const { server, store } = shared();
    @Module({ providers: [Steps] })
    class LaterModule {}
    const app = await startApp({
      imports: [{ module: LaterModule, global: true }, StampedeCacheModule.forTest({ store: store() })],
      controllers: [Things],
    });
    const finding = app.get(Things).find();
    await sleep(20);
    expect(server.locks.get('cache things')).toBeDefined();
    const closing = app.close();
    await sleep(20);
    expect(steps).toEqual([]);
    app.get(Things).finish();
    expect(await finding).toBe('things');
    await closing;
    expect(steps).toEqual(['loaded', 'onModuleDestroy', 'beforeApplicationShutdown', 'onApplicationShutdown']);
    expect(server.entries.get('things')).toContain('"things"');
    expect(server.locks.get('cache things')).toBeUndefined();
  });

  it('evicts what a request changes that is answered while it closes', async () => {
    steps = [];
    const { server, store } = shared();
    const { app, url } = await listen({
      imports: [StampedeCacheModule.forTest({ store: store() })],
      controllers: [Things],
      providers: [Steps],
    });
    await app.get(StampedeCache).set('things', 'old', '60s');
    const updating = fetch(`${url}/things`, { method: 'PUT', headers: { connection: 'close' } });
    await sleep(50);
    const closing = app.close();
    await eventually(() => steps.includes('beforeApplicationShutdown'));
    app.get(Things).finish();
    expect(await (await updating).text()).toBe('updated');
    await closing;
    expect(server.entries.get('things')).toBeUndefined();
  });

  it('aborts a load that takes longer than drainTimeout, which counts once, and releases locks', async () => {
    const { server, store } = shared();
    const app = await startApp({
      imports: [StampedeCacheModule.forTest({ store: store(), drainTimeout: 1_000 })],
      controllers: [Things],
    });
    const finding = app.get(Things).find();
    finding.catch(() => {});
    await app.get(LockService).acquire('lock');
    await sleep(20);
    const startedAt = performance.now();
    await app.close();
    expect(performance.now() - startedAt).toBeLessThan(1_900);
    await expect(finding).rejects.toMatchObject({ code: 'CACHE_CLOSED' });
    expect(server.locks.get('cache things')).toBeUndefined();
    expect(server.locks.get('lock lock')).toBeUndefined();
  });

  it('may be called twice; calls after it load without the cache', async () => {
    const app = await startApp({ imports: [StampedeCacheModule.forTest()], controllers: [Things] });
    await Promise.all([app.close(), app.close()]);
    await app.close();
    const finding = app.get(Things).find();
    await sleep(10);
    app.get(Things).finish();
    expect(await finding).toBe('things');
  });
});

describe('N4: on Redis', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  it('leaves the client open that it was given, and no other', async () => {
    const client = new Redis(redis.url);
    const others = async () => (await redis.client().client('LIST')) as string;
    await client.ping();
    const before = (await others()).trim().split('\n').length;
    const app = await startApp({
      imports: [StampedeCacheModule.forRoot({ logger: keptLogger(), connection: client })],
      controllers: [Things],
    });
    await app.get(StampedeCache).set('key', 'value', '60s');
    expect((await others()).trim().split('\n').length).toBeGreaterThan(before);
    await app.close();
    expect(await client.ping()).toBe('PONG');
    await eventually(async () => (await others()).trim().split('\n').length === before);
    client.disconnect();
  });

  it("names its keys by the cache's name", async () => {
    const app = await startApp({
      imports: [
        StampedeCacheModule.forRoot({ logger: keptLogger(), connection: redis.url }),
        StampedeCacheModule.forRoot({ logger: keptLogger(), connection: redis.url, name: 'sessions' }),
        StampedeCacheModule.forRoot({ logger: keptLogger(), connection: redis.url, name: 'own', namespace: 'shop' }),
      ],
    });
    await redis.client().flushall();
    await app.get(StampedeCache).set('key', 'default', '60s');
    await app.get(stampedeCacheToken('sessions')).set('key', 'sessions', '60s');
    await app.get(stampedeCacheToken('own')).set('key', 'own', '60s');
    expect((await redis.client().keys('*')).sort()).toEqual([
      'shop.own:{key}',
      'stampede.sessions:{key}',
      'stampede:{key}',
    ]);
    expect(await app.get(StampedeCache).get('key')).toBe('default');
    expect(await app.get(stampedeCacheToken('sessions')).get('key')).toBe('sessions');
  });

  it('fails the boot when the function that is to give a client gives nonsense', async () => {
    const error = await bootError({
      imports: [StampedeCacheModule.forRoot({ logger: keptLogger(), connection: () => 6379 as never })],
    });
    expect(error).toMatchObject({ name: 'InvalidOptionError', option: 'connection' });
  });
});

interface AppWorker {
  url(): Promise<string>;
  closeAndEnd(): Promise<void>;
}

describe('N4: the process', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());
  afterEach(() => running?.kill());

  let running: WorkerProcess<AppWorker> | undefined;
  async function startWorker(env: Record<string, string>): Promise<WorkerProcess<AppWorker>> {
    const [worker] = await startProcesses<AppWorker>(new URL('./app.worker.mjs', import.meta.url), 1, { env });
    running = worker;
    return worker as WorkerProcess<AppWorker>;
  }

  it.each(['memory', 'Redis'])('ends by itself after app.close(): %s', async (kind) => {
    const env: Record<string, string> = kind === 'Redis' ? { REDIS_URL: redis.url } : {};
    const worker = await startWorker(env);
    const url = await worker.call('url');
    for (const path of ['find/1', 'find/1', 'page/1', 'page/1', 'locked/1']) {
      expect(await (await fetch(`${url}/${path}`)).text()).toBe('thing 1');
    }
    await worker.call('closeAndEnd');
    const tooLate = sleep(3_000).then(() => worker.kill());
    expect(await Promise.race([worker.exited, tooLate])).toEqual({ code: 0, signal: null });
  });

  it('SIGTERM in the middle of a load: the request is answered, the value stored, the lock released', async () => {
    await redis.client().flushall();
    const locks = async () => (await redis.client().keys('*')).filter((key) => /:(lock|mutex)$/.test(key));
    const worker = await startWorker({ REDIS_URL: redis.url, LOAD: '400' });
    const url = await worker.call('url');
    const answers = ['find/1', 'page/1', 'locked/1'].map((path) =>
      fetch(`${url}/${path}`).then((answer) => answer.text()),
    );
    await eventually(async () => (await locks()).length === 3);
    const exit = worker.kill('SIGTERM');
    expect(await Promise.all(answers)).toEqual(Array(3).fill('thing 1'));
    expect(await exit).toEqual({ code: null, signal: 'SIGTERM' });
    expect(await locks()).toEqual([]);
    expect(await redis.client().get('stampede:{thing:1}')).toContain('"thing 1"');
  });
});
