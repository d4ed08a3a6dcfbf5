import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { formatEntry } from '../../lib/core/entry.js';
import type { Store } from '../../lib/core/store.js';
import { eventually } from '../support/eventually.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { startStore } from './redis-stores.js';

let redis: RedisServer;
let leader: Store;
let follower: Store;
let third: Store;
let n = 0;
let key: string;
let token: string;

const text = formatEntry('1', 1);
const entry = { text, px: 60_000 };

beforeAll(async () => {
  redis = await startRedis();
  const start = () => startStore({ connection: redis.url });
  [leader, follower, third] = await Promise.all([start(), start(), start()]);
  for (const store of [leader, follower, third]) await learnScripts(store);
});
afterAll(async () => {
  await Promise.all([leader, follower, third].map((store) => store.close()));
  await redis.stop();
});

/** The first use of a script on a connection sends its text. */
async function learnScripts(store: Store): Promise<void> {
  const lock = { kind: 'cache', key: 'learn', token: `${store.process}#0` } as const;
  await store.lead({ ...lock, lease: 1_000, follow: true });
  await store.renew({ ...lock, lease: 1_000 });
  await store.end(lock);
  await store.replace({ key: 'learn', by: 'evict' });
}

/** What Redis runs for it, by command. */
async function commandsOf(run: () => Promise<unknown>): Promise<Record<string, number>> {
  await redis.resetStats();
  await run();
  return redis.commandStats();
}

const newKey = () => {
  key = `key ${++n}`;
  token = `${leader.process}#${n}`;
};
const lead = (
  store: Store,
  { follow = true, ...more }: { follow?: boolean; token?: string; outcomeSeen?: string } = {},
) => store.lead({ kind: 'cache', key, token: `${store.process}#${n}`, lease: 10_000, follow, ...more });
const end = (more = {}) => leader.end({ kind: 'cache', key, token, ...more });

describe('commands of', () => {
  test('read', async () => {
    expect(await commandsOf(() => leader.read(['a']))).toEqual({ get: 1 });
    expect(await commandsOf(() => leader.read(['a', 'b', 'c']))).toEqual({ mget: 1 });
    expect(await commandsOf(() => leader.read([]))).toEqual({});
  });

  test('lead: leader, resent, follower, the same again, hit, stale', async () => {
    newKey();
    expect(await commandsOf(() => lead(leader))).toEqual({ evalsha: 1, mget: 1, set: 1 });
    expect(await commandsOf(() => lead(leader))).toEqual({ evalsha: 1, mget: 1, pexpire: 1 });
    expect(await commandsOf(() => lead(follower))).toEqual({ evalsha: 1, mget: 1, append: 1, pttl: 1 });
    expect(await commandsOf(() => lead(follower, { outcomeSeen: '' }))).toEqual({ evalsha: 1, mget: 1, pttl: 1 });
    expect(await commandsOf(() => lead(third, { follow: false }))).toEqual({ evalsha: 1, mget: 1, pttl: 1 });
    await end({ entry: { text, px: 60_000, freshFor: 50_000 } });
    expect(await commandsOf(() => lead(follower))).toEqual({ evalsha: 1, mget: 1, time: 1 });
    await leader.replace({ key, by: 'expire' });
    expect(await commandsOf(() => lead(leader))).toEqual({ evalsha: 1, mget: 1, time: 1, set: 1 });
    await end({ entry });
    expect(await commandsOf(() => lead(follower))).toEqual({ evalsha: 1, mget: 1 });
  });

  test('end: alone, with followers, refused', async () => {
    newKey();
    await lead(leader);
    expect(await commandsOf(() => end({ entry, outcome: 'v1' }))).toEqual({ evalsha: 1, get: 1, set: 1, del: 1 });
    expect(await commandsOf(() => end({ entry }))).toEqual({ evalsha: 1, get: 1 });

    newKey();
    await lead(leader);
    await lead(follower);
    await lead(third);
    const withTwo = { evalsha: 1, get: 1, set: 1, del: 1, publish: 2 };
    expect(await commandsOf(() => end({ entry, outcome: 'v1' }))).toEqual(withTwo);

    newKey();
    await lead(leader);
    // Followers that can't be woken.
    await redis.client().append(`test:{${key}}:lock`, ',*');
    expect(await commandsOf(() => end())).toEqual({ evalsha: 1, get: 1, del: 1 });

    newKey();
    await lead(leader);
    await lead(follower);
    const withOutcome = { evalsha: 1, get: 1, set: 1, del: 1, publish: 1 };
    expect(await commandsOf(() => end({ outcome: 'e1' }))).toEqual(withOutcome);

    newKey();
    await lead(leader);
    await lead(follower);
    const shortLived = { evalsha: 1, get: 1, set: 2, del: 1, publish: 1 };
    expect(await commandsOf(() => end({ entry: { text, px: 999 }, outcome: 'v1' }))).toEqual(shortLived);
  });

  test('renew', async () => {
    newKey();
    await lead(leader);
    const renew = (name: string) => leader.renew({ kind: 'cache', key, token: name, lease: 1_000 });
    expect(await commandsOf(() => renew(token))).toEqual({ evalsha: 1, get: 1, pexpire: 1 });
    expect(await commandsOf(() => renew('other#1'))).toEqual({ evalsha: 1, get: 1 });
  });

  test('a look at the lock', async () => {
    newKey();
    await lead(leader);
    expect(await commandsOf(() => follower.leaseLeft(key))).toEqual({ pttl: 1 });
  });

  test('replace', async () => {
    newKey();
    const replace = (by: Parameters<Store['replace']>[0]['by']) => commandsOf(() => leader.replace({ key, by }));
    // One message to all near caches.
    expect(await replace('evict')).toEqual({ evalsha: 1, get: 1, del: 1, publish: 1 });
    expect(await replace('expire')).toEqual({ evalsha: 1, mget: 1, del: 1, publish: 1 });
    expect(await replace({ claim: token, lease: 1_000 })).toEqual({ evalsha: 1, get: 1, set: 1, del: 1 });
    await lead(follower);
    // The holder and the follower, and near caches.
    expect(await replace('evict')).toEqual({ evalsha: 1, get: 1, del: 1, publish: 3 });
    await lead(leader);
    await end({ entry });
    expect(await replace('expire')).toEqual({ evalsha: 1, mget: 1, del: 1, time: 1, set: 1, publish: 1 });
  });

  test('the end of a write from outside of a load, and no fill, is told to near caches', async () => {
    newKey();
    await lead(leader);
    const claimed = { evalsha: 1, get: 1, set: 1, del: 1, publish: 1 };
    expect(await commandsOf(() => end({ entry, claimed: true }))).toEqual(claimed);
  });

  test('a lock of the lock service', async () => {
    newKey();
    const lock = { kind: 'lock', key, token } as const;
    const take = () => leader.lead({ ...lock, lease: 10_000, follow: true });
    expect(await commandsOf(take)).toEqual({ evalsha: 1, mget: 1, time: 1, set: 2 });
    expect(await commandsOf(() => leader.end(lock))).toEqual({ evalsha: 1, get: 1, del: 1 });
  });

  test('four processes on a cold key', async () => {
    newKey();
    const fourth = await startStore({ connection: redis.url });
    await learnScripts(fourth);
    const woken = new Set<Store>();
    const followers = [follower, third, fourth];
    for (const store of followers) store.onWake(() => woken.add(store));
    const commands = await commandsOf(async () => {
      await Promise.all([leader, ...followers].map((store) => store.read([key])));
      await lead(leader);
      await Promise.all(followers.map((store) => lead(store)));
      await end({ entry });
      await eventually(() => woken.size === 3);
      await Promise.all(followers.map((store) => store.read([key])));
    });
    expect(commands).toEqual({ evalsha: 5, get: 8, mget: 4, set: 2, append: 3, pttl: 3, del: 1, publish: 3 });
    expect(Object.values(commands).reduce((sum, calls) => sum + calls)).toBe(29);
    await fourth.close();
  });
});
