import { Module, type OnApplicationShutdown } from '@nestjs/common';
import { Redis } from 'ioredis';
import { StampedeCacheModule } from 'nestjs-stampede-cache';
import { AppController } from './app.controller.js';
import { ProductsService } from './products.service.js';

const redisUrl = process.env['REDIS_URL'] ?? 'redis://localhost:6379';

@Module({
  imports: [StampedeCacheModule.forRoot({ connection: redisUrl, onBoot: 'fail' })],
  controllers: [AppController],
  providers: [ProductsService, { provide: Redis, useFactory: () => new Redis(redisUrl) }],
})
export class AppModule implements OnApplicationShutdown {
  constructor(private readonly redis: Redis) {}

  async onApplicationShutdown(): Promise<void> {
    await this.redis.quit();
  }
}
