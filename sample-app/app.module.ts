import { Module } from '@nestjs/common';
import { StampedeCacheModule } from 'nestjs-stampede-cache';
import { Database } from './database.js';
import { HealthController } from './health.controller.js';
import { ProductsController } from './products.controller.js';
import { ProductsService } from './products.service.js';
import { ReportsController } from './reports.controller.js';
import { ReportsService } from './reports.service.js';

@Module({
  imports: [
    StampedeCacheModule.forRootAsync({
      useFactory: () => {
        const { REDIS_URL } = process.env;
        return REDIS_URL ? { connection: REDIS_URL } : { store: 'memory' };
      },
    }),
  ],
  controllers: [ProductsController, ReportsController, HealthController],
  providers: [Database, ProductsService, ReportsService],
})
export class AppModule {}
