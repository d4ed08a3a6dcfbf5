import { setTimeout as sleep } from 'node:timers/promises';
import { Controller, Delete, Get, Param, Post } from '@nestjs/common';
import { Redis } from 'ioredis';
import { CacheResponse, LockService, StampedeCache } from 'nestjs-stampede-cache';
import { ProductsService } from './products.service.js';

@Controller()
export class AppController {
  crowdLoads = 0;
  reports = 0;

  constructor(
    private readonly products: ProductsService,
    private readonly cache: StampedeCache,
    private readonly locks: LockService,
    private readonly redis: Redis,
  ) {}

  @Get('products/:id')
  find(@Param('id') id: string): Promise<{ id: string }> {
    return this.products.find(id);
  }

  @Delete('products/:id')
  change(@Param('id') id: string): Promise<string> {
    return this.products.change(id);
  }

  @Get('report')
  @CacheResponse('60s')
  report(): { report: string } {
    this.reports += 1;
    return { report: 'monthly' };
  }

  /** 50 callers of this process on one key. */
  @Post('crowd/:key')
  async crowd(@Param('key') key: string): Promise<string[]> {
    const callers = Array.from({ length: 50 }, () =>
      this.cache.getOrLoad(
        key,
        async () => {
          this.crowdLoads += 1;
          await sleep(300);
          return `loaded by ${process.pid}`;
        },
        '60s',
      ),
    );
    return [...new Set(await Promise.all(callers))];
  }

  /** How many are in the locked part at once, in all processes. */
  @Post('locked/:key')
  locked(@Param('key') key: string): Promise<{ inside: number; fencingToken: number }> {
    return this.locks.withLock(key, {}, async ({ fencingToken }) => {
      const inside = await this.redis.incr(`inside ${key}`);
      await sleep(30);
      await this.redis.decr(`inside ${key}`);
      return { inside, fencingToken };
    });
  }

  @Get('counts')
  counts(): Record<string, number> {
    return { products: this.products.loads, crowd: this.crowdLoads, reports: this.reports };
  }
}
