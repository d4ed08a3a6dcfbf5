// This library, in an application context of Nest, by the way that `through` names. It is the build in dist/lib, and has
// Nest and ioredis 6 from the project's own packages; by default it is handed a client of the same ioredis as its peers.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { defer, lastValueFrom } from 'rxjs';
import {
  CacheAside,
  CacheAsideInterceptor,
  CacheResponse,
  LockService,
  StampedeCache,
  StampedeCacheModule,
} from '../../dist/lib/index.js';
import { UnavailableError } from './unavailable.mjs';

export async function create(options) {
  const { port, lease, wait, through = 'getOrLoad', ownClient = false, inMemory } = options;
  const address = { host: '127.0.0.1', port };
  const connection = ownClient ? address : new (await import('ioredis')).Redis({ ...address, lazyConnect: true });
  const way = WAYS[through](options);

  class Bench {}
  Module({
    imports: [
      StampedeCacheModule.forRoot({
        connection,
        defaults: { lease, wait },
        ...(inMemory && { near: { max: inMemory } }),
      }),
    ],
    providers: way.providers,
  })(Bench);
  const application = await boot(Bench).catch((error) => {
    throw inMemory && error.name === 'InvalidOptionError'
      ? new UnavailableError('this build has no near cache')
      : error;
  });
  const cache = application.get(StampedeCache);
  const locks = application.get(LockService);
  return {
    getOrLoad: await way.open(application, cache),
    evict: (key) => cache.evict(key),
    async lock(name) {
      const lock = await locks.acquire(name);
      return () => lock.release();
    },
    getMany: many(cache, options),
    close: () => application.close(),
  };
}

function boot(module) {
  return NestFactory.createApplicationContext(module, { logger: false, abortOnError: false });
}

function many(cache, { ttl, together }) {
  if (!together) {
    return (keys, load) =>
      Promise.all(keys.map((key) => cache.getOrLoad(key, async () => (await load([key]))[0], ttl)));
  }
  if (!cache.getOrLoadMany) throw new UnavailableError('this build has no getOrLoadMany');
  return (keys, load) => cache.getOrLoadMany(keys, load, ttl);
}

const WAYS = {
  getOrLoad: ({ ttl }) => ({
    providers: [],
    open: async (_application, cache) => (key, loader) => cache.getOrLoad(key, loader, ttl),
  }),

  decorator({ ttl }) {
    class Values {
      find(_key, loader) {
        return loader();
      }
    }
    decorate(
      Values,
      'find',
      CacheAside((key) => key, ttl),
    );
    return {
      providers: [Values],
      async open(application) {
        const values = application.get(Values);
        return (key, loader) => values.find(key, loader);
      },
    };
  },

  /** The interceptor as Nest's router calls it, without the router, the server and the sockets. */
  interceptor({ ttl }) {
    class ValuesController {
      find() {}
    }
    decorate(ValuesController, 'find', CacheResponse(ttl));
    return {
      providers: [CacheAsideInterceptor],
      async open(application) {
        const interceptor = application.get(CacheAsideInterceptor);
        const { find } = ValuesController.prototype;
        return async (key, loader) => {
          const context = new ExecutionContextHost([requestOf(key), responseOf()], ValuesController, find);
          context.setType('http');
          const answer = await interceptor.intercept(context, { handle: () => defer(loader) });
          return lastValueFrom(answer);
        };
      },
    };
  },
};

function decorate({ prototype }, method, decorator) {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, method);
  decorator(prototype, method, descriptor);
  Object.defineProperty(prototype, method, descriptor);
}

/** What the interceptor sees of a request of Express. */
function requestOf(key) {
  const url = `/values/${key}`;
  return { method: 'GET', url, originalUrl: url, hostname: 'bench.test', headers: { accept: '*/*' } };
}

function responseOf() {
  return {
    statusCode: 200,
    headersSent: false,
    getHeader: () => undefined,
    getHeaders: () => ({}),
    header() {},
    removeHeader() {},
    status(code) {
      this.statusCode = code;
    },
  };
}
