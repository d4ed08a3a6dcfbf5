import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { AppModule } from './app.module.js';

async function main(): Promise<void> {
  const adapter = process.env['PLATFORM'] === 'fastify' ? new FastifyAdapter() : new ExpressAdapter();
  const app = await NestFactory.create(AppModule, adapter, { logger: ['error', 'warn'] });
  app.enableShutdownHooks();
  await app.listen(0, '127.0.0.1');
  process.once('message', async () => {
    await app.close();
    // Nothing else may keep the process alive.
    process.disconnect();
  });
  process.send?.({ url: await app.getUrl() });
}

void main();
