import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { StoreDeniedError } from '../../lib/core/errors.js';
import type { Store } from '../../lib/core/store.js';
import type { RedisStoreOptions } from '../../lib/redis/redis-store.js';
import { eventually } from '../support/eventually.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { newStore, startStore } from './redis-stores.js';

const USERS = [
  'user nochannels on >x ~* resetchannels +@all',
  'user nosubscribe on >x ~* &* +@all -subscribe',
  'user nopublish on >x ~* &* +@all -publish',
  'user otherchannels on >x ~* resetchannels &other:* +@all',
  'user ours on >x ~test:* resetchannels &test:* +@all',
  'user otherkeys on >x ~other:* &* +@all',
  'user noset on >x ~* &* +@all -set',
];

let redis: RedisServer;
let stores: Store[] = [];
beforeAll(async () => {
  redis = await startRedis({ users: ['user default on nopass ~* &* +@all', ...USERS].join('\n') });
});
afterAll(() => redis.stop());
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()));
  stores = [];
  await redis.client().flushall();
});

const as = (username: string) => ({ port: redis.port, username, password: 'x' });

function logInto(warnings: string[]) {
  return { log() {}, error() {}, warn: (message: string) => warnings.push(message) };
}

describe.each(['nochannels', 'nosubscribe', 'nopublish', 'otherchannels'])('a user with %s (R8)', (username) => {
  test('waits by polling, warns once, leaves no lock', async () => {
    const warnings: string[] = [];
    const store = newStore({ connection: as(username), logger: logInto(warnings) });
    const other = await startStore({ connection: redis.url });
    stores = [store, other];
    await store.start();
    await eventually(() => warnings.length > 0);

    const lock = { kind: 'cache', key: 'k', token: `${store.process}#1` } as const;
    const otherLock = { ...lock, token: `${other.process}#1` };
    const lease = { lease: 5_000, follow: true };

    // It leads, ends, and renews.
    await store.lead({ ...lock, ...lease });
    expect(await other.lead({ ...otherLock, ...lease })).toMatchObject({ is: 'waiting', wakes: true });
    expect(await store.renew({ ...lock, lease: 5_000 })).toBe('held');
    expect(await store.end({ ...lock, outcome: 'v1' })).toEqual({ is: 'held', stored: false });
    expect(await other.lead({ ...otherLock, ...lease, outcomeSeen: '' })).toEqual({ is: 'outcome', text: 'v1' });
    expect(await redis.client().exists('test:{k}:lock')).toBe(0);

    // It follows: it isn't woken, but the outcome is there for its polls.
    await other.lead({ ...otherLock, ...lease });
    const poll = { ...lock, token: `${store.process}#2`, ...lease };
    expect(await store.lead(poll)).toMatchObject({ is: 'waiting', wakes: false });
    expect(await store.lead(poll)).toMatchObject({ is: 'waiting', wakes: false });
    expect(await redis.client().get('test:{k}:lock')).toBe(`${otherLock.token},*`);
    await other.end({ ...otherLock, outcome: 'v2' });
    expect(await store.lead({ ...poll, outcomeSeen: lock.token })).toEqual({ is: 'outcome', text: 'v2' });

    // It evicts, though it can't wake the holder.
    await other.lead({ ...otherLock, ...lease });
    await store.replace({ key: 'k', by: 'evict' });
    expect(await other.end(otherLock)).toEqual({ is: 'refused' });
    expect(await redis.client().keys('*')).toEqual([]);

    expect(warnings).toEqual([expect.stringContaining("'&test:*'")]);
    expect(warnings[0]).toContain('polling');
  });
});

test('the rule in the warning is enough', async () => {
  const warnings: string[] = [];
  stores = [await startStore({ connection: as('ours'), logger: logInto(warnings) })];
  expect(warnings).toEqual([]);
});

test('a user who may not store leaves no lock', async () => {
  await redis.client().acl('SETUSER', 'noset', '+set');
  const [store, other] = await Promise.all([
    startStore({ connection: as('noset') }),
    startStore({ connection: redis.url }),
  ]);
  stores = [store, other];
  await redis.client().acl('SETUSER', 'noset', '-set');
  const lock = { kind: 'cache', key: 'k', token: `${store.process}#1` } as const;
  await redis.client().set('test:{k}:lock', `${lock.token},${other.process}`);
  const woken = new Promise((resolve) => other.onWake(resolve));
  expect(await store.end({ ...lock, entry: { text: '1;;0;0;', px: 1_000 }, outcome: 'v1' })).toEqual({
    is: 'held',
    stored: false,
    error: expect.stringMatching(/can't run this command|NOPERM/),
  });
  expect(await woken).toBe(lock.token);
  expect(await redis.client().keys('*')).toEqual([]);
});

describe('a start that is refused', () => {
  const refusal = async (
    connection: RedisStoreOptions['connection'],
    options: Partial<RedisStoreOptions> = {},
  ): Promise<Error> => {
    const store = newStore({ connection, connectTimeout: 1_000, ...options });
    stores.push(store);
    return store.start().then(
      () => new Error('it started'),
      (error) => error,
    );
  };

  test.each([
    ['a wrong password', { username: 'ours', password: 'wrong' }, /WRONGPASS/],
    ['no right to our keys', { username: 'otherkeys', password: 'x' }, /NOPERM/],
    ['no right to a command of our scripts', { username: 'noset', password: 'x' }, /permission|can't run/],
  ])('by %s says what to grant', async (_why, user, message) => {
    const error = await refusal({ port: redis.port, ...user });
    expect(error).toBeInstanceOf(StoreDeniedError);
    expect(error.message).toMatch(message);
    expect(error.message).toContain('~test:* &test:*');
    expect(await redis.client().keys('*')).toEqual([]);
  });

  test('by no password at all (NOAUTH) says what to grant', async () => {
    await redis.client().config('SET', 'requirepass', 'new');
    try {
      const error = await refusal({ port: redis.port });
      expect(error).toBeInstanceOf(StoreDeniedError);
      expect(error.message).toMatch(/NOAUTH/);
    } finally {
      await redis.client().config('SET', 'requirepass', '');
    }
  });

  test('by no right to wait for replicas says so, and that is enough', async () => {
    await redis.client().acl('SETUSER', 'nowait', 'on', '>x', '~*', '&*', '+@all', '-wait');
    const { message } = await refusal(as('nowait'), { replicas: 1 });
    expect(message).toMatch(/NOPERM.* \+wait /);
    const rules = message.slice(message.indexOf('+@connection')).split(' ');
    await redis.client().acl('SETUSER', 'waits', 'reset', 'on', '>x', ...rules);
    const warnings: string[] = [];
    const store = newStore({ connection: as('waits'), replicas: 1, logger: logInto(warnings) });
    stores.push(store);
    await store.start();
    // It may ask, and there is none.
    expect(warnings).toEqual([expect.stringContaining("'replicas' is 1, but a primary has only 0")]);
    await expect(store.replace({ key: 'k', by: 'evict' })).rejects.toThrow("0 of the 1 'replicas'");
  });

  test('what it says is enough', async () => {
    const { message } = await refusal({ port: redis.port, username: 'otherkeys', password: 'x' });
    const rules = message.slice(message.indexOf('+@connection')).split(' ');
    await redis.client().acl('SETUSER', 'least', 'reset', 'on', '>x', ...rules);
    const warnings: string[] = [];
    const store = await startStore({ connection: as('least'), logger: logInto(warnings) });
    stores.push(store);
    const lock = { kind: 'cache', key: 'k', token: `${store.process}#1` } as const;
    const entry = { text: '1;;0;0;', px: 60_000, freshFor: 1_000 };
    await store.lead({ ...lock, lease: 5_000, follow: true });
    expect(await store.lead({ ...lock, token: `${store.process}#2`, lease: 5_000, follow: true })).toMatchObject({
      is: 'waiting',
      wakes: true,
    });
    expect(await store.renew({ ...lock, lease: 5_000 })).toBe('held');
    expect(await store.end({ ...lock, entry, outcome: 'v', holdOff: 100 })).toMatchObject({ stored: true });
    await store.replace({ key: 'k', by: 'expire' });
    expect((await store.read(['k', 'l'], true)).texts[0]).toMatch(/^1;/);
    await store.replace({ key: 'k', by: { claim: `${store.process}#3`, lease: 100 } });
    await store.replace({ key: 'k', by: 'evict' });
    await store.lead({ ...lock, kind: 'lock', lease: 5_000, follow: true });
    expect(await store.end({ ...lock, kind: 'lock' })).toMatchObject({ is: 'held' });
    expect(warnings).toEqual([]);
  });
});

test('once it is granted, the next connection is woken', async () => {
  const warnings: string[] = [];
  await redis.client().acl('SETUSER', 'late', 'on', '>x', '~*', 'resetchannels', '+@all');
  const store = newStore({ connection: as('late'), logger: logInto(warnings) });
  stores = [store];
  const listening = new Promise<void>((resolve) => store.onWake((token) => token === undefined && resolve()));
  await store.start();
  await eventually(() => warnings.length > 0);
  await redis.client().acl('SETUSER', 'late', '&test:*');
  await redis.client().client('KILL', 'USER', 'late');
  await listening;
  // Losing the connection may have been a second one.
  expect(warnings.filter((warning) => warning.includes('polling'))).toHaveLength(1);
});
