/** Nest calls no hook of a module when another fails the boot: what we have opened by then may not keep the process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { LockService, StampedeCacheModule } from 'nestjs-stampede-cache';
import { eventually } from '../support/eventually.js';
import { type RedisCluster, startCluster } from '../support/redis-cluster.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { keptLogger, startApp } from './apps.js';

const SCRIPT = fileURLToPath(new URL('./boot.worker.mjs', import.meta.url));

let redis: RedisServer;
let cluster: RedisCluster;
beforeAll(async () => {
  [redis, cluster] = await Promise.all([startRedis(), startCluster()]);
});
afterAll(() => Promise.all([redis.stop(), cluster.stop()]));

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

/** Starts the process; the test's own time limit is that of its end. */
function start(connection: object, env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [SCRIPT], {
    env: { ...process.env, CONNECTION: JSON.stringify(connection), ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  let output = '';
  child.stdout.on('data', (text) => {
    output += text;
  });
  const exited = once(child, 'close').then(([code]) => ({ code, output }));
  return { output: () => output, exited };
}

describe('a process whose boot another provider fails', () => {
  it.each([
    ['onModuleInit', /^failed: onModuleInit\n$/],
    ['onApplicationBootstrap', /^failed: onApplicationBootstrap\n$/],
    ['a missing dependency', /^failed: Nest can't resolve dependencies of the Faulty/],
    ['compile', /^failed: Nest can't resolve dependencies of the Faulty/],
  ])(
    'ends by itself: %s',
    async (fault, output) => {
      const { exited } = start({ url: redis.url }, { FAULT: fault });
      expect(await exited).toEqual({ code: 0, output: expect.stringMatching(output) });
    },
    30_000,
  );

  it('ends by itself with a near cache', async () => {
    const { exited } = start({ url: redis.url }, { FAULT: 'onModuleInit', NEAR: 'yes' });
    expect(await exited).toEqual({ code: 0, output: 'failed: onModuleInit\n' });
  }, 30_000);

  it('ends by itself on a Cluster', async () => {
    const { exited } = start({ nodes: cluster.startupNodes }, { FAULT: 'onModuleInit', NEAR: 'yes' });
    expect(await exited).toEqual({ code: 0, output: 'failed: onModuleInit\n' });
  }, 30_000);

  it('ends by itself also when there is no Redis', async () => {
    const away = { url: 'redis://127.0.0.1:1', connectTimeout: 100 };
    expect(await start(away, { FAULT: 'onModuleInit' }).exited).toEqual({ code: 0, output: 'failed: onModuleInit\n' });
  }, 30_000);
});

describe('a process that has nothing else to do', () => {
  it('goes on for who waits for a lock', async () => {
    const app = await startApp({
      imports: [StampedeCacheModule.forRoot({ connection: redis.url, logger: keptLogger() })],
    });
    const lock = await app.get(LockService).acquire('lock');
    const { output, exited } = start({ url: redis.url });
    await eventually(() => output() === 'booted\n', { within: 20_000 });
    // Longer than any single deadline of a command that is on its way.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    await lock.release();
    expect(await exited).toEqual({ code: 0, output: 'booted\nacquired\n' });
  }, 30_000);
});
