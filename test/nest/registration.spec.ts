import { describe, expect, it, jest } from '@jest/globals';
import { Injectable, Logger, Module } from '@nestjs/common';
import {
  bypassStampedeCache,
  CacheAside,
  CacheNotInjectedError,
  LockService,
  MemoryStore,
  STAMPEDE_CACHE_OPTIONS,
  StampedeCache,
  StampedeCacheModule,
  type StampedeCacheModuleAsyncOptions,
  type StampedeCacheModuleOptions,
  type StampedeCacheOptions,
  type StampedeCacheOptionsFactory,
  WithLock,
} from 'nestjs-stampede-cache';
import { bootError, keptLogger, startApp } from './apps.js';

@Injectable()
class Config {
  readonly store = 'memory' as const;
}

@Module({ providers: [Config], exports: [Config] })
class ConfigModule {}

@Injectable()
class OptionsFactory implements StampedeCacheOptionsFactory {
  constructor(private readonly config: Config) {}
  async createStampedeCacheOptions(): Promise<StampedeCacheOptions> {
    return { store: this.config.store, logger: keptLogger() };
  }
}

@Module({ imports: [ConfigModule], providers: [OptionsFactory], exports: [OptionsFactory] })
class OptionsModule {}

@Injectable()
class Service {
  loads = 0;
  @CacheAside((id) => id, '60s')
  async find(id: string): Promise<string> {
    this.loads += 1;
    return id;
  }
  @WithLock((id) => id)
  async locked(id: string): Promise<string> {
    return id;
  }
  async findUndecorated(id: string): Promise<string> {
    return this.find(id);
  }
}

@Module({ providers: [Service], exports: [Service] })
class FeatureModule {}

describe('N5: forRootAsync', () => {
  const ways: [string, StampedeCacheModuleAsyncOptions][] = [
    [
      'useFactory',
      {
        imports: [ConfigModule],
        inject: [Config],
        useFactory: ({ store }: Config) => ({ store, logger: keptLogger() }),
      },
    ],
    ['an async useFactory', { useFactory: async () => ({ logger: keptLogger() }) }],
    ['useClass', { imports: [ConfigModule], useClass: OptionsFactory }],
    ['useExisting', { imports: [OptionsModule], useExisting: OptionsFactory }],
  ];

  it.each(ways)('boots with %s, in whatever order modules are imported', async (_way, options) => {
    for (const named of [options, { ...options, name: 'other' }]) {
      const imports = [FeatureModule, StampedeCacheModule.forTest(), StampedeCacheModule.forRootAsync(named)];
      if (!('name' in named)) imports.splice(1, 1);
      for (const order of [imports, [...imports].reverse()]) {
        const app = await startApp({ imports: order });
        await app.get(Service).find('1');
        await app.get(Service).find('1');
        expect(app.get(Service).loads).toBe(1);
      }
    }
  });

  it.each<[string, object]>([
    ['useFactory', {}],
    ['useFactory', { useFactory: () => ({}), useClass: OptionsFactory }],
    ['connection', { useFactory: () => ({}), connection: 'redis://localhost' }],
  ])('refuses a wrong %s', (option, options) => {
    expect(() => StampedeCacheModule.forRootAsync(options as never)).toThrow(expect.objectContaining({ option }));
  });

  it.each<[string, unknown]>([
    ['name', { name: 'late', store: 'memory' }],
    ['connection', { connection: undefined }],
    ['The options of StampedeCacheModule', undefined],
    ['The options of StampedeCacheModule', []],
  ])('refuses at boot a wrong %s that the factory returned', async (option, options) => {
    const error = await bootError({
      imports: [StampedeCacheModule.forRootAsync({ useFactory: () => options as never })],
    });
    expect(error).toMatchObject({ name: 'InvalidOptionError', option });
  });
});

describe('forRoot', () => {
  it.each<[string, object]>([
    ['connection', { connection: undefined }],
    ['connection', { connection: null }],
    ['connection', { connection: '' }],
    ['connection', { connection: 6379 }],
    ['conection', { conection: 'redis://:secret@localhost' }],
    ['store', { store: 'redis' }],
    ['store', { store: {} }],
    ['namespace', { namespace: 'a{b}' }],
    ['namespace', { namespace: '' }],
    ['logger', { logger: {} }],
    ['logger', { logger: { log() {}, warn() {} } }],
    ['logger', { logger: 'console' }],
    ['logger', { logger: null }],
    ['commandTimeout', { commandTimeout: '1 s' }],
    ['drainTimeout', { drainTimeout: -1 }],
    ['defaults', { defaults: '60s' }],
    ['ttl', { defaults: { ttl: '60s' } }],
    ['lease', { defaults: { lease: '1500' } }],
    ['replicas', { connection: 'redis://127.0.0.1:1', replicas: -1 }],
    ['replicas', { store: 'memory', replicas: 1 }],
    ['replicas', { replicas: 1 }],
    ['readFrom', { connection: 'redis://127.0.0.1:1', readFrom: 'replicas' }],
    ['readFrom', { connection: 'redis://127.0.0.1:1', readFrom: 'replica' }],
    ['readFrom', { store: new MemoryStore(), readFrom: 'replica' }],
  ])('fails at boot for a wrong %s: %p', async (option, options) => {
    const error = await bootError({ imports: [StampedeCacheModule.forRoot(options as StampedeCacheModuleOptions)] });
    expect(error).toMatchObject({ name: 'InvalidOptionError', option });
    expect(error.message).not.toContain('secret');
  });

  it.each<[string, object]>([
    ['name', { name: '' }],
    ['name', { name: 'a b' }],
    ['isGlobal', { isGlobal: 'yes' }],
  ])('fails as soon as it is called for a wrong %s: %p', (option, options) => {
    expect(() => StampedeCacheModule.forRoot(options as StampedeCacheModuleOptions)).toThrow(
      expect.objectContaining({ name: 'InvalidOptionError', option }),
    );
  });

  it.each([null, 5, 'redis://localhost', [], () => ({})])('is given %p, and says what it takes', (options) => {
    const error = expect.objectContaining({
      name: 'InvalidOptionError',
      message: expect.stringContaining('an object'),
    });
    const given = options as never;
    expect(() => StampedeCacheModule.forRoot(given)).toThrow(error);
    expect(() => StampedeCacheModule.forTest(given)).toThrow(error);
    expect(() => StampedeCacheModule.forRootAsync(given)).toThrow(error);
    expect(() => StampedeCacheModule.forRootAsync(undefined as never)).toThrow(error);
  });

  it('says what to do when the variable that connection comes from is unset', async () => {
    const error = await bootError({
      imports: [StampedeCacheModule.forRoot({ connection: process.env['NO_SUCH_URL'] })],
    });
    expect(error.message).toMatch(
      /^connection must be a redis:\/\/ URL.*such as REDIS_URL\) unset\?.*it is undefined$/,
    );
  });

  it.each<[string, StampedeCacheModuleOptions]>([
    ['no connection', {}],
    ["store: 'memory'", { store: 'memory', connection: undefined }],
  ])('with %s says once that processes are not coordinated', async (_what, options) => {
    const logger = keptLogger();
    await startApp({ imports: [StampedeCacheModule.forRoot({ ...options, logger })] });
    expect(logger.lines).toEqual([expect.stringMatching(/^log: .*processes are not coordinated/)]);
  });

  it("logs by Nest's logger, under the name of the cache", async () => {
    const log = jest.spyOn(Logger.prototype, 'log').mockImplementation(() => {});
    await startApp({ imports: [StampedeCacheModule.forRoot(), StampedeCacheModule.forRoot({ name: 'sessions' })] });
    const contexts = log.mock.contexts.map((logger) => (logger as unknown as { context: string }).context);
    expect(contexts).toEqual(expect.arrayContaining(['StampedeCache', 'StampedeCache sessions']));
    log.mockRestore();
  });

  it('is ready before whoever it is injected into', async () => {
    const store = new MemoryStore();
    let started = false;
    store.start = async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      started = true;
    };
    let startedBefore: boolean | undefined;
    @Injectable()
    class Early {
      constructor(readonly cache: StampedeCache) {
        startedBefore = started;
      }
    }
    await startApp({ imports: [StampedeCacheModule.forTest({ store })], providers: [Early] });
    expect(startedBefore).toBe(true);
  });
});

describe('N6: unit tests', () => {
  it.each(['find', 'locked', 'findUndecorated'] as const)('new Service().%s() says what to do', async (method) => {
    const called = new Service()[method]('1');
    await expect(called).rejects.toThrow(CacheNotInjectedError);
    await expect(called).rejects.toThrow(/StampedeCacheModule\.forTest\(\).*bypassStampedeCache\(new Service\(…\)\)/s);
  });

  it('so does a method without its instance', async () => {
    const { find } = Service.prototype;
    await expect(find('1')).rejects.toThrow(CacheNotInjectedError);
  });

  it('bypassStampedeCache runs one instance uncached', async () => {
    const service = bypassStampedeCache(new Service());
    await service.find('1');
    expect(await service.findUndecorated('1')).toBe('1');
    expect(service.loads).toBe(2);
    expect(await service.locked('1')).toBe('1');
    expect(Object.keys(service)).toEqual(['loads']);
    await expect(new Service().find('1')).rejects.toThrow(CacheNotInjectedError);
  });

  it('also one that Nest made', async () => {
    const app = await startApp({ imports: [StampedeCacheModule.forTest()], providers: [Service] });
    const service = bypassStampedeCache(app.get(Service));
    await service.find('1');
    await service.find('1');
    expect(service.loads).toBe(2);
  });

  it('forTest needs nothing and logs nothing', async () => {
    const log = jest.spyOn(Logger.prototype, 'log').mockImplementation(() => {});
    const app = await startApp({ imports: [StampedeCacheModule.forTest()], providers: [Service] });
    await app.get(Service).find('1');
    await app.get(Service).find('1');
    expect(app.get(Service).loads).toBe(1);
    expect(log.mock.contexts.map((logger) => (logger as unknown as { context: string }).context)).not.toContain(
      'StampedeCache',
    );
    log.mockRestore();
  });

  it('overrideProvider replaces cache and locks, also for decorated methods', async () => {
    const fakeCache = { getOrLoad: async (key: string) => `faked ${key}` };
    const fakeLocks = { withLock: async (key: string) => `not run: ${key}` };
    const app = await startApp({ imports: [StampedeCacheModule.forTest()], providers: [Service] }, (builder) =>
      builder.overrideProvider(StampedeCache).useValue(fakeCache).overrideProvider(LockService).useValue(fakeLocks),
    );
    expect(app.get(StampedeCache)).toBe(fakeCache);
    expect(await app.get(Service).find('1')).toBe('faked 1');
    expect(await app.get(Service).locked('1')).toBe('not run: 1');
    expect(app.get(Service).loads).toBe(0);
  });

  it('overrideProvider puts every cache of an application into memory', async () => {
    const imports = [
      StampedeCacheModule.forRoot({ connection: 'redis://127.0.0.1:1' }),
      StampedeCacheModule.forRoot({ name: 'other', connection: 'redis://127.0.0.1:1' }),
      FeatureModule,
    ];
    const logger = keptLogger();
    const app = await startApp({ imports }, (builder) =>
      builder.overrideProvider(STAMPEDE_CACHE_OPTIONS).useValue({ store: 'memory', logger }),
    );
    await app.get(Service).find('1');
    await app.get(Service).find('1');
    expect(app.get(Service).loads).toBe(1);
    expect(logger.lines.filter((line) => line.includes('not coordinated'))).toHaveLength(2);
  });

  it('overrideModule puts a cache for tests in the place of another', async () => {
    const cacheModule = StampedeCacheModule.forRoot({ connection: 'redis://127.0.0.1:1' });
    const app = await startApp({ imports: [cacheModule, FeatureModule] }, (builder) =>
      builder.overrideModule(cacheModule as never).useModule(StampedeCacheModule.forTest() as never),
    );
    expect(await app.get(Service).find('1')).toBe('1');
  });
});
