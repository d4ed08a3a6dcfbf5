/** N2 on real servers: two caches of one application, each with a Redis, a namespace and defaults of its own. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import {
  CacheAside,
  CacheEvict,
  CachePut,
  InjectLockService,
  InjectStampedeCache,
  LockService,
  StampedeCache,
  StampedeCacheModule,
  type StampedeCacheModuleOptions,
  WithLock,
} from 'nestjs-stampede-cache';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { bootError, keptLogger, startApp } from './apps.js';

let first: RedisServer;
let second: RedisServer;
beforeAll(async () => {
  [first, second] = await Promise.all([startRedis(), startRedis()]);
});
afterAll(() => Promise.all([first.stop(), second.stop()]));

@Injectable()
class Users {
  loads = 0;
  constructor(
    readonly cache: StampedeCache,
    readonly locks: LockService,
    @InjectStampedeCache('sessions') readonly sessions: StampedeCache,
    @InjectLockService('sessions') readonly sessionLocks: LockService,
  ) {}

  @CacheAside((id) => ['user', id], '60s')
  async find(id: string): Promise<string> {
    this.loads += 1;
    return `user ${id}`;
  }
  @CacheAside((id) => ['user', id], { ttl: '60s', cache: 'sessions' })
  async findSession(id: string): Promise<string> {
    this.loads += 1;
    return `session of ${id}`;
  }
  @CachePut((id) => ['user', id], { ttl: '60s', cache: 'sessions' })
  async logIn(id: string): Promise<string> {
    return `new session of ${id}`;
  }
  @CacheEvict({ keys: (id) => [['user', id]] }, { cache: 'sessions' })
  async logOut(_id: string): Promise<void> {}
  @WithLock((id) => ['user', id], { cache: 'sessions' })
  async inSession(_id: string, run: () => Promise<void>): Promise<void> {
    return run();
  }
}

async function start(options: StampedeCacheModuleOptions, sessions: StampedeCacheModuleOptions): Promise<Users> {
  const logger = keptLogger();
  const app = await startApp({
    imports: [
      StampedeCacheModule.forRoot({ ...options, logger }),
      StampedeCacheModule.forRoot({ ...sessions, logger, name: 'sessions' }),
    ],
    providers: [Users],
  });
  return app.get(Users);
}

async function useBoth(users: Users): Promise<void> {
  expect(await Promise.all([users.find('1'), users.findSession('1')])).toEqual(['user 1', 'session of 1']);
  expect(await Promise.all([users.find('1'), users.findSession('1')])).toEqual(['user 1', 'session of 1']);
  expect(users.loads).toBe(2);
  await users.logIn('1');
  expect([await users.cache.get('user:1'), await users.sessions.get('user:1')]).toEqual(['user 1', 'new session of 1']);
  await users.logOut('1');
  expect([await users.cache.has('user:1'), await users.sessions.has('user:1')]).toEqual([true, false]);
  await users.inSession('1', async () => {
    expect(await users.sessionLocks.tryAcquire('user:1')).toBeUndefined();
    const lock = await users.locks.tryAcquire('user:1');
    expect(lock).toBeDefined();
    await lock?.release();
  });
}

describe('N2: the same key in two caches', () => {
  it('stays apart on two servers', async () => {
    await Promise.all([first.client().flushall(), second.client().flushall()]);
    const users = await start(
      { connection: first.url },
      { connection: second.url, namespace: 'shop', defaults: { staleIfError: '1h' } },
    );
    await useBoth(users);
    await users.findSession('2');
    expect(await first.client().keys('*}')).toEqual(['stampede:{user:1}']);
    expect(await second.client().keys('*:{user:2}')).toEqual(['shop.sessions:{user:2}']);
    // The defaults of one are not the other's: only this one keeps values for an hour longer.
    expect(await first.client().pttl('stampede:{user:1}')).toBeLessThanOrEqual(60_000);
    expect(await second.client().pttl('shop.sessions:{user:2}')).toBeGreaterThan(3_600_000);
  });

  it('stays apart on one server, by the namespaces that names give', async () => {
    await first.client().flushall();
    const users = await start({ connection: first.url }, { connection: first.url });
    await useBoth(users);
    await users.findSession('1');
    expect((await first.client().keys('*:{user:1}')).sort()).toEqual([
      'stampede.sessions:{user:1}',
      'stampede:{user:1}',
    ]);
  });

  it('stays apart on one server also with one namespace for both, and says so when a right is missing', async () => {
    await first.client().flushall();
    const shop = { connection: first.url, namespace: 'shop' };
    await useBoth(await start(shop, shop));
    expect((await first.client().keys('*{user:1}')).sort()).toEqual(['shop:{user:1}']);
    await first.client().call('ACL', 'SETUSER', 'shopper', 'on', '>secret', '~shop:*', '&shop:*', '+@all');
    const connection = first.url.replace('://', '://shopper:secret@');
    const error = await bootError({
      imports: [StampedeCacheModule.forRoot({ ...shop, connection, name: 'sessions', logger: keptLogger() })],
    });
    expect(error.message).toContain('~shop.sessions:* &shop.sessions:*');
  });

  it.each<[string, StampedeCacheModuleOptions, StampedeCacheModuleOptions]>([
    ['the default one has what a name gives', { namespace: 'stampede.sessions' }, { name: 'sessions' }],
    ['two names give one', { namespace: 'shop', name: 'a.b' }, { namespace: 'shop.a', name: 'b' }],
  ])('does not stay apart by two ways to one namespace, which is an error at boot: %s', async (_what, one, two) => {
    const connect = (options: StampedeCacheModuleOptions) => ({
      ...options,
      connection: first.url,
      logger: keptLogger(),
    });
    const { name, isGlobal = true, ...options } = connect(two);
    for (const imports of [
      [StampedeCacheModule.forRoot(connect(one)), StampedeCacheModule.forRoot(connect(two))],
      [
        StampedeCacheModule.forRootAsync({ name: name as string, isGlobal, useFactory: async () => options }),
        StampedeCacheModule.forRoot(connect(one)),
      ],
    ]) {
      const error = await bootError({ imports });
      expect(error).toMatchObject({ name: 'InvalidOptionError', option: 'namespace' });
      expect(error.message).toMatch(
        /^namespace must be another one: '[a-z.]+' is that of the (default cache|cache '[a-z.]+') as well/,
      );
    }
    // Memory is nobody else's.
    await startApp({
      imports: [
        StampedeCacheModule.forRoot(connect(one)),
        StampedeCacheModule.forRoot({ ...connect(two), store: 'memory' }),
      ],
    });
  });

  it('the trouble of one is not the trouble of the other', async () => {
    const users = await start({ connection: first.url }, { connection: 'redis://127.0.0.1:1', connectTimeout: 100 });
    expect(await users.findSession('3')).toBe('session of 3');
    await expect(users.sessions.evict('user:3')).rejects.toMatchObject({ code: 'CACHE_EVICTION' });
    await users.find('3');
    expect(await users.cache.has('user:3')).toBe(true);
  });
});
