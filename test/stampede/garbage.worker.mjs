// Prints how many bytes a hit leaves in the old generation, where only a full collection finds them.
import 'reflect-metadata';
import { getHeapSpaceStatistics } from 'node:v8';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import {
  CacheAside,
  CacheAsideInterceptor,
  CacheResponse,
  StampedeCache,
  StampedeCacheModule,
} from 'nestjs-stampede-cache';
import { defer, lastValueFrom } from 'rxjs';

const CALLERS = 64;
const HITS = 12_000;
const KEYS = 1_000;
const TTL = '10m';

const { port, length, through } = JSON.parse(process.argv[2]);
const value = 'x'.repeat(length);

/** What a call is made of. */
class Values {
  find(_i, load) {
    return load();
  }
  answer() {}
}
const find = Object.getOwnPropertyDescriptor(Values.prototype, 'find');
CacheAside((i) => `key-${i}`, TTL)(Values.prototype, 'find', find);
Object.defineProperty(Values.prototype, 'find', find);
CacheResponse(TTL)(Values.prototype, 'answer', Object.getOwnPropertyDescriptor(Values.prototype, 'answer'));

class App {}
Module({
  imports: [StampedeCacheModule.forRoot({ connection: { port }, namespace: 'garbage', commandTimeout: '5s' })],
  providers: [Values, CacheAsideInterceptor],
})(App);
const app = await NestFactory.createApplicationContext(App, { logger: false });

const ways = {
  getOrLoad(i, load) {
    return app.get(StampedeCache).getOrLoad(`key-${i}`, load, TTL);
  },
  decorator(i, load) {
    return app.get(Values).find(i, load);
  },
  /** As Nest's router calls it. */
  async interceptor(i, load) {
    const context = new ExecutionContextHost([requestOf(i), new SomeResponse()], Values, Values.prototype.answer);
    context.setType('http');
    return lastValueFrom(await app.get(CacheAsideInterceptor).intercept(context, { handle: () => defer(load) }));
  },
};

function requestOf(i) {
  const url = `/values/${i}`;
  return { method: 'GET', url, originalUrl: url, headers: { accept: '*/*' } };
}

/** What the interceptor needs of a response of Express. */
class SomeResponse {
  statusCode = 200;
  headersSent = false;
  headers = {};
  getHeader(name) {
    return this.headers[name.toLowerCase()];
  }
  getHeaders() {
    return this.headers;
  }
  setHeader(name, given) {
    this.headers[name.toLowerCase()] = given;
  }
  writeHead() {}
}

async function hit(count, load = () => Promise.reject(new Error('no hit'))) {
  let next = 0;
  const caller = async () => {
    while (next < count) await ways[through](next++ % KEYS, load);
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

function oldGeneration() {
  const spaces = getHeapSpaceStatistics().filter(({ space_name: name }) => /^(old|large_object)_space$/.test(name));
  return spaces.reduce((sum, { space_used_size: size }) => sum + size, 0);
}

await hit(KEYS, async () => value);
await hit(HITS);
globalThis.gc();
const before = oldGeneration();
await hit(HITS);
// Twice: what survives the first moves to the old generation only with the second.
globalThis.gc({ type: 'minor' });
globalThis.gc({ type: 'minor' });
console.log((oldGeneration() - before) / HITS);
await app.close();
