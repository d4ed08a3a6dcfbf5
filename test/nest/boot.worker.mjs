// A Nest application in a process of its own that is never closed: it says what came of its boot, and has to end by itself.
import 'reflect-metadata';
import { Inject, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { LockService, StampedeCacheModule } from 'nestjs-stampede-cache';

const { CONNECTION, FAULT, NEAR } = process.env;

class Faulty {
  onModuleInit() {
    if (FAULT === 'onModuleInit') throw new Error(FAULT);
  }
  onApplicationBootstrap() {
    if (FAULT === 'onApplicationBootstrap') throw new Error(FAULT);
  }
}
if (FAULT === 'a missing dependency' || FAULT === 'compile') Inject('nobody')(Faulty, undefined, 0);

const { url, nodes, connectTimeout } = JSON.parse(CONNECTION);
async function connection() {
  if (url) return url;
  const { Cluster } = await import('ioredis');
  return new Cluster(nodes, { lazyConnect: true });
}

class AppModule {}
Module({
  imports: [
    StampedeCacheModule.forRoot({
      connection,
      ...(connectTimeout && { connectTimeout }),
      ...(NEAR && { near: { max: 10 } }),
    }),
  ],
  providers: [Faulty],
})(AppModule);

async function boot() {
  if (FAULT === 'compile') return Test.createTestingModule({ imports: [AppModule] }).compile();
  return NestFactory.createApplicationContext(AppModule, { logger: false, abortOnError: false });
}

try {
  const app = await boot();
  console.log('booted');
  // Nothing but the cache's own connections and deadlines is left to wait for.
  const lock = await app.get(LockService).acquire('lock', { wait: '30s' });
  console.log('acquired');
  await lock.release();
} catch ({ message }) {
  console.log(`failed: ${message}`);
}
