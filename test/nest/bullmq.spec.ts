/** @nestjs/bullmq, on a real Redis: workers of several instances, and one cache of all. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { BullModule, getQueueToken, Processor, WorkerHost } from '@nestjs/bullmq';
import { Injectable } from '@nestjs/common';
import { type Job, Queue, QueueEvents } from 'bullmq';
import { CacheAside, CacheEvict, defineKey, StampedeCache, StampedeCacheModule } from 'nestjs-stampede-cache';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { moment, startApp } from './apps.js';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const reportKey = defineKey('report', (month: string) => [month]);
let built = 0;

@Injectable()
class Reports {
  @CacheAside(reportKey, '1h')
  async build(month: string): Promise<string> {
    built += 1;
    return moment(`report of ${month}`);
  }
}

@Processor('reports', { concurrency: 5 })
class ReportProcessor extends WorkerHost {
  constructor(private readonly reports: Reports) {
    super();
  }

  async process({ name, data }: Job<{ month: string }>): Promise<string> {
    return name === 'forget' ? this.forget(data.month) : this.reports.build(data.month);
  }

  @CacheEvict(reportKey)
  async forget(month: string): Promise<string> {
    return month;
  }
}

test('jobs of one report in two instances build it once, and a job evicts it', async () => {
  const start = () =>
    startApp({
      imports: [
        StampedeCacheModule.forRoot({ connection: redis.url, logger: { log() {}, warn() {}, error() {} } }),
        BullModule.forRoot({ connection: { host: redis.host, port: redis.port } }),
        BullModule.registerQueue({ name: 'reports' }),
      ],
      providers: [Reports, ReportProcessor],
    });
  const [app] = await Promise.all([start(), start()]);
  const queue = app.get<Queue>(getQueueToken('reports'));
  const events = new QueueEvents('reports', { connection: { host: redis.host, port: redis.port } });
  try {
    await events.waitUntilReady();
    // Each job that is waited for listens to these two.
    for (const emitter of [events, queue]) emitter.setMaxListeners(100);
    const run = async (name: string, count: number) => {
      const jobs = await queue.addBulk(Array.from({ length: count }, () => ({ name, data: { month: 'may' } })));
      return Promise.all(jobs.map((job) => job.waitUntilFinished(events)));
    };
    expect(new Set(await run('build', 20))).toEqual(new Set(['report of may']));
    expect(built).toBe(1);
    await run('forget', 1);
    expect(await app.get(StampedeCache).has(reportKey('may'))).toBe(false);
    await run('build', 20);
    expect(built).toBe(2);
  } finally {
    await events.close();
  }
});
