import { describe, expect, it } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import {
  CacheAside,
  CacheEvict,
  InjectLockService,
  InjectStampedeCache,
  LockService,
  StampedeCache,
  StampedeCacheModule,
  stampedeCacheToken,
  WithLock,
} from 'nestjs-stampede-cache';
import { bootError, startApp } from './apps.js';

@Injectable()
class Both {
  loads = 0;

  constructor(
    readonly cache: StampedeCache,
    readonly locks: LockService,
    @InjectStampedeCache('sessions') readonly sessions: StampedeCache,
    @InjectLockService('sessions') readonly sessionLocks: LockService,
    @InjectStampedeCache() readonly theDefault: StampedeCache,
  ) {}

  @CacheAside((id) => ['user', id], '60s')
  async findUser(id: string): Promise<string> {
    this.loads += 1;
    return `user ${id}`;
  }

  @CacheAside((id) => ['user', id], { ttl: '60s', cache: 'sessions' })
  async findSession(id: string): Promise<string> {
    this.loads += 1;
    return `session of ${id}`;
  }

  @CacheEvict((id) => ['user', id], { cache: 'sessions' })
  async logOut(_id: string): Promise<void> {}

  @WithLock((id) => ['user', id], { cache: 'sessions', wait: 0 })
  async inSessionLock<T>(_id: string, run: () => Promise<T>): Promise<T> {
    return run();
  }
}

describe('N2: two registrations', () => {
  const imports = [StampedeCacheModule.forTest(), StampedeCacheModule.forTest({ name: 'sessions' })];

  it.each([[imports], [[...imports].reverse()]])('are apart, in whatever order', async (imports) => {
    const both = (await startApp({ imports, providers: [Both] })).get(Both);
    expect(both.theDefault).toBe(both.cache);
    expect(both.sessions).not.toBe(both.cache);
    expect(both.sessionLocks).not.toBe(both.locks);

    expect(await Promise.all([both.findUser('1'), both.findSession('1')])).toEqual(['user 1', 'session of 1']);
    expect(await both.cache.get('user:1')).toBe('user 1');
    expect(await both.sessions.get('user:1')).toBe('session of 1');
    await both.logOut('1');
    expect(await both.cache.has('user:1')).toBe(true);
    expect(await both.sessions.has('user:1')).toBe(false);
    expect(both.loads).toBe(2);
  });

  it('have locks of their own', async () => {
    const both = (await startApp({ imports, providers: [Both] })).get(Both);
    await both.inSessionLock('1', async () => {
      expect(await both.sessionLocks.tryAcquire('user:1')).toBeUndefined();
      const lock = await both.locks.tryAcquire('user:1');
      expect(lock).toBeDefined();
      await lock?.release();
    });
  });

  it('under one name are an error, unless each is for its own module', async () => {
    const error = await bootError({ imports: [StampedeCacheModule.forTest(), StampedeCacheModule.forTest()] });
    expect(error.message).toMatch(/^name must be different for each StampedeCacheModule\.forRoot\(\)/);

    const local = () => StampedeCacheModule.forTest({ isGlobal: false });
    @Module({ imports: [local()], providers: [LocalService], exports: [LocalService] })
    class First {}
    @Module({ imports: [local()], providers: [{ provide: 'second', useClass: LocalService }], exports: ['second'] })
    class Second {}
    const app = await startApp({ imports: [First, Second] });
    expect(app.get(LocalService).cache).not.toBe(app.get<LocalService>('second').cache);
  });

  it('that is imported twice is one', async () => {
    const once = StampedeCacheModule.forTest();
    @Module({ imports: [once] })
    class Feature {}
    await startApp({ imports: [once, Feature] });
  });
});

@Injectable()
class LocalService {
  constructor(readonly cache: StampedeCache) {}
  @CacheAside(() => 'key', '60s')
  async find(): Promise<string> {
    return 'value';
  }
}

describe('a name that is not registered', () => {
  it('is an error at boot that says what to import', async () => {
    const error = await bootError({ imports: [StampedeCacheModule.forTest()], providers: [Both] });
    expect(error.message).toContain("is StampedeCacheModule.forRoot({ name: 'sessions' }) imported?");
  });

  it('is an error at boot for decorated methods too, and so is the default', async () => {
    @Injectable()
    class Decorated {
      @CacheAside(() => 'key', { ttl: '60s', cache: 'sessions' })
      async find(): Promise<void> {}
    }
    const named = await bootError({ imports: [StampedeCacheModule.forTest()], providers: [Decorated] });
    expect(named.message).toContain("is StampedeCacheModule.forRoot({ name: 'sessions' }) imported?");
    const unnamed = await bootError({ providers: [LocalService, { provide: StampedeCache, useValue: {} }] });
    expect(unnamed.message).toContain('is StampedeCacheModule.forRoot() imported? In tests: forTest()');
  });

  it('is what a module imported without forRoot says', async () => {
    const error = await bootError({ imports: [StampedeCacheModule] });
    expect(error.message).toContain('is imported as StampedeCacheModule.forRoot(), not as it is');
  });
});

describe('two applications in one process', () => {
  it('never see each other, though they share the decorated class', async () => {
    const metadata = { imports: [StampedeCacheModule.forTest()], providers: [LocalService] };
    const [first, second] = await Promise.all([startApp(metadata), startApp(metadata)]);
    const [one, other] = [first.get(LocalService), second.get(LocalService)];
    expect(first.get(StampedeCache)).not.toBe(second.get(StampedeCache));
    await one.find();
    expect(await one.cache.has('key')).toBe(true);
    expect(await other.cache.has('key')).toBe(false);
    await other.find();
    await first.close();
    expect(await other.cache.has('key')).toBe(true);
    expect(second.get(stampedeCacheToken())).toBe(other.cache);
  });
});
