/** @nestjs/schedule: what every instance of an application starts at the same moment. */
import { describe, expect, it, jest } from '@jest/globals';
import { type INestApplication, Injectable, Logger } from '@nestjs/common';
import { Cron, Interval, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { CacheAside, LockService, StampedeCache, StampedeCacheModule, WithLock } from 'nestjs-stampede-cache';
import { createTestKit } from 'nestjs-stampede-cache/testing';
import { filter, firstValueFrom } from 'rxjs';
import { settle } from '../support/clock.js';
import { startApp } from './apps.js';

const ONCE_A_YEAR = '0 0 1 1 *';
let runs: string[] = [];
let finish: () => void = () => {};
/** When the test says so. */
let finished = Promise.resolve();

@Injectable()
class Jobs {
  day = '2030-01-01';
  constructor(readonly locks: LockService) {}

  @Cron(ONCE_A_YEAR, { name: 'above' })
  @WithLock(() => ['job', 'above'], { wait: 0 })
  async above(): Promise<void> {
    runs.push('above');
    await finished;
  }

  @WithLock(() => ['job', 'below'], { wait: 0 })
  @Cron(ONCE_A_YEAR, { name: 'below' })
  async below(): Promise<void> {
    runs.push('below');
    await finished;
  }

  @Cron(ONCE_A_YEAR, { name: 'by hand' })
  async byHand(): Promise<void> {
    await using lock = await this.locks.tryAcquire('by hand');
    if (!lock) return;
    runs.push('by hand');
    await finished;
  }

  @Cron(ONCE_A_YEAR, { name: 'daily' })
  @CacheAside(function (this: Jobs) {
    return ['daily', this.day];
  }, '2d')
  async daily(): Promise<void> {
    runs.push(`daily ${this.day}`);
    if (this.day === 'bad day') throw new Error('failed');
    await finished;
  }
}

@Injectable()
class IntervalJobs {
  @CacheAside(() => 'interval', '1h')
  @Interval('interval', 10)
  async interval(): Promise<void> {}
}

/** Two instances of an application on one store, and the errors that the scheduler logs. */
async function start() {
  runs = [];
  finished = new Promise((resolve) => {
    finish = resolve;
  });
  const kit = createTestKit();
  const modules = [kit.module, kit.otherProcess().module];
  const apps = await Promise.all(
    modules.map((module) => startApp({ imports: [module, ScheduleModule.forRoot()], providers: [Jobs] })),
  );
  const logged = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => {});
  const tick = (app: INestApplication | undefined, job: string) =>
    app?.get(SchedulerRegistry).getCronJob(job).fireOnTick();
  return {
    apps,
    logged,
    /** Starts the job in both at once. */
    async tick(job: string) {
      await Promise.all(apps.map((app) => tick(app, job)));
      await kit.clock.advance(0);
    },
  };
}

describe('@nestjs/schedule', () => {
  it.each(['above', 'below'])('%s @WithLock: in one process at a time; the other one logs', async (job) => {
    const { tick, logged } = await start();
    await tick(job);
    expect(runs).toEqual([job]);
    expect(logged.mock.calls).toEqual([[expect.objectContaining({ code: 'LOCK_CONTENDED' })]]);
    finish();
    await settle();
    await tick(job);
    expect(runs.length).toBeGreaterThan(1);
    logged.mockRestore();
  });

  it('with tryAcquire: in one process at a time, and nobody logs', async () => {
    const { tick, logged } = await start();
    await tick('by hand');
    expect(runs).toEqual(['by hand']);
    finish();
    expect(logged).not.toHaveBeenCalled();
    logged.mockRestore();
  });

  it('with @CacheAside and the day in the key: once a day in all processes, and again if it failed', async () => {
    const { apps, tick, logged } = await start();
    finish();
    await tick('daily');
    await tick('daily');
    expect(runs).toEqual(['daily 2030-01-01']);
    for (const app of apps) app.get(Jobs).day = 'bad day';
    await tick('daily');
    await tick('daily');
    expect(runs.filter((run) => run === 'daily bad day')).toHaveLength(2);
    expect(logged).toHaveBeenCalledTimes(4);
    for (const app of apps) app.get(Jobs).day = '2030-01-02';
    await tick('daily');
    expect(runs.filter((run) => run === 'daily 2030-01-02')).toHaveLength(1);
    logged.mockRestore();
  });

  it('@Interval runs through the cache, also below a decorator of ours', async () => {
    const app = await startApp({
      imports: [StampedeCacheModule.forTest(), ScheduleModule.forRoot()],
      providers: [IntervalJobs],
    });
    expect(app.get(SchedulerRegistry).getIntervals()).toEqual(['interval']);
    const answered = app.get(StampedeCache).events.pipe(filter(({ type }) => type === 'hit'));
    await firstValueFrom(answered);
  });
});
