import type { DynamicModule } from '@nestjs/common';
import { Cluster, Redis } from 'ioredis';
import {
  InjectLockService,
  InjectStampedeCache,
  LockService,
  MemoryStore,
  StampedeCache,
  StampedeCacheModule,
  type StampedeCacheOptions,
  type StampedeCacheOptionsFactory,
} from 'nestjs-stampede-cache';
import { describe, expect, test } from 'tstyche';

class Config {
  readonly url: string | undefined;
}

class Factory implements StampedeCacheOptionsFactory {
  createStampedeCacheOptions(): StampedeCacheOptions {
    return { store: 'memory' };
  }
}

describe('StampedeCacheModule', () => {
  test('forRoot', () => {
    const { forRoot } = StampedeCacheModule;
    expect(forRoot()).type.toBe<DynamicModule>();
    expect(forRoot).type.toBeCallableWith({ connection: process.env['REDIS_URL'] });
    expect(forRoot).type.toBeCallableWith({
      connection: { host: 'localhost', port: 6379 },
      name: 'a',
      isGlobal: false,
    });
    expect(forRoot).type.toBeCallableWith({ connection: new Redis() });
    expect(forRoot).type.toBeCallableWith({ connection: new Cluster([]) });
    expect(forRoot).type.toBeCallableWith({ connection: async () => new Redis() });
    expect(forRoot).type.toBeCallableWith({ store: new MemoryStore() });
    expect(forRoot).type.toBeCallableWith({ defaults: { wait: '10s' as const, isolate: 'freeze' as const } });
    expect(forRoot).type.not.toBeCallableWith({ connection: 6379 });
    expect(forRoot).type.not.toBeCallableWith({ store: 'redis' });
    expect(forRoot).type.not.toBeCallableWith({ defaults: { ttl: '60s' as const } });
    expect(forRoot).type.not.toBeCallableWith({ conection: 'redis://localhost' });
  });

  test('forRootAsync', () => {
    const { forRootAsync } = StampedeCacheModule;
    expect(
      forRootAsync({ inject: [Config], useFactory: ({ url }: Config) => ({ connection: url }) }),
    ).type.toBe<DynamicModule>();
    expect(
      forRootAsync({
        name: 'other',
        useFactory: async () => (Math.random() < 1 ? { connection: '' } : { store: 'memory' }),
      }),
    ).type.toBe<DynamicModule>();
    expect(forRootAsync).type.toBeCallableWith({ useClass: Factory });
    expect(forRootAsync).type.toBeCallableWith({ useExisting: Factory, isGlobal: false });
    expect(forRootAsync).type.not.toBeCallableWith({ useClass: Config });
    expect(forRootAsync).type.not.toBeCallableWith({ connection: 'redis://localhost' });
  });

  test('injection', () => {
    class Service {
      @InjectStampedeCache() readonly unnamed!: StampedeCache;
      @InjectStampedeCache('sessions') readonly named!: StampedeCache;
      constructor(@InjectLockService('sessions') readonly locks: LockService) {}
    }
    expect<typeof Service>().type.toBeConstructableWith({} as LockService);
    expect(InjectStampedeCache).type.not.toBeCallableWith(5);
  });
});
