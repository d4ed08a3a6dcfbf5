// A Nest application in a process of its own: it says where it listens, closes when it is told or signalled, and has to
// end by itself after that.
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { Controller, Get, Inject, Module, Param } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { CacheAside, CacheResponse, StampedeCacheModule, WithLock } from 'nestjs-stampede-cache';
import { serve } from '../support/worker.mjs';

const { REDIS_URL, LOAD = '0' } = process.env;

/** Applies decorators as a compiler does: the last one first. */
function decorate(target, property, ...decorators) {
  const descriptor = Object.getOwnPropertyDescriptor(target, property);
  for (const decorator of decorators.reverse()) decorator(target, property, descriptor);
  Object.defineProperty(target, property, descriptor);
}

/** Closes with the application, as the modules of databases do. */
class Database {
  open = true;
  async query(id) {
    await sleep(Number(LOAD));
    if (!this.open) throw new Error('the database is closed');
    return `thing ${id}`;
  }
  onApplicationShutdown() {
    this.open = false;
  }
}

class Things {
  constructor(database) {
    this.database = database;
  }
  find(id) {
    return this.database.query(id);
  }
  page(id) {
    return this.database.query(id);
  }
  async locked(id) {
    return this.database.query(id);
  }
}
decorate(
  Things.prototype,
  'find',
  Get('find/:id'),
  CacheAside((id) => ['thing', id], '60s'),
);
decorate(Things.prototype, 'page', Get('page/:id'), CacheResponse('60s'));
decorate(
  Things.prototype,
  'locked',
  Get('locked/:id'),
  WithLock((id) => ['thing', id]),
);
for (const method of ['find', 'page', 'locked']) Param('id')(Things.prototype, method, 0);
Inject(Database)(Things, undefined, 0);
Controller()(Things);

class AppModule {}
Module({
  imports: [StampedeCacheModule.forRoot(REDIS_URL ? { connection: REDIS_URL } : {})],
  controllers: [Things],
  providers: [Database],
})(AppModule);

const app = await NestFactory.create(AppModule, { logger: ['warn', 'error'] });
app.enableShutdownHooks(['SIGTERM']);
await app.listen(0, '127.0.0.1');

serve({
  async url() {
    return app.getUrl();
  },
  /** What ends it then is that nothing is left to do. */
  async closeAndEnd() {
    await app.close();
    process.removeAllListeners('disconnect');
    setTimeout(() => process.disconnect(), 50);
  },
});
