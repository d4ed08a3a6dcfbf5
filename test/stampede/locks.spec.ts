import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import {
  type CacheEvent,
  createStampede,
  LockContendedError,
  LockLostError,
  type LockService,
  LockUnavailableError,
  RedisStore,
  type Stampede,
} from 'nestjs-stampede-cache';
import { eventually } from '../support/eventually.js';
import { type FaultProxy, startProxy } from '../support/fault-proxy.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';

const NAMESPACE = 'locks';
const logger = { log() {}, warn() {}, error() {} };

let redis: RedisServer;
let proxy: FaultProxy;
let stampedes: Stampede[] = [];
/** Of a process whose connection the proxy can disturb, and of one that it can't. */
let locks: LockService;
let others: LockService;
let events: CacheEvent[];

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.client().flushall();
  proxy = await startProxy(redis.port);
  stampedes = [proxy.port, redis.port].map((port) =>
    createStampede({
      store: new RedisStore({ connection: { port }, namespace: NAMESPACE, commandTimeout: 500, logger }),
    }),
  );
  await Promise.all(stampedes.map(({ start }) => start()));
  [locks, others] = stampedes.map((each) => each.locks) as [LockService, LockService];
  events = [];
  stampedes[0]!.cache.events.subscribe((event) => events.push(event));
});
afterEach(async () => {
  proxy.release();
  proxy.onRequest(undefined);
  await Promise.all(stampedes.map(({ close }) => close()));
  await proxy.stop();
});

function lockName(key: string): string {
  return `${NAMESPACE}:{${key}}:mutex`;
}

/** Resolves when the signal aborts, with its reason. */
function aborted(signal: AbortSignal): Promise<unknown> {
  if (signal.aborted) return Promise.resolve(signal.reason);
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason), { once: true }));
}

test('L1: to release a lock that has expired throws nothing: `release` says so, and an event does', async () => {
  const lock = await locks.acquire('key', { lease: 200, renew: false });
  await aborted(lock.signal);
  await eventually(async () => (await redis.client().exists(lockName('key'))) === 0);
  expect(await lock.release()).toBe(false);
  expect(events.map(({ type }) => type)).toEqual(['lock-acquired', 'lock-lost']);
});

test('L1: to release a lock that another has by now leaves it to the other', async () => {
  const lock = await locks.acquire('key', { lease: 200, renew: false });
  await aborted(lock.signal);
  const other = await others.acquire('key');
  expect(await lock.release()).toBe(false);
  expect(await redis.client().exists(lockName('key'))).toBe(1);
  expect(await other.release()).toBe(true);
});

test('L1: a lock that was lost hides neither what ran under it returned nor what it threw', async () => {
  const options = { lease: 200, renew: false };
  const result = locks.withLock('key', options, async ({ signal }) => {
    await aborted(signal);
    return 'done';
  });
  expect(await result).toBe('done');
  const failing = locks.withLock('key', options, async ({ signal }) => {
    await aborted(signal);
    throw new RangeError('what happened');
  });
  await expect(failing).rejects.toThrow(new RangeError('what happened'));
});

test('L2: a renewal that failed is tried again: the lock is still held long after its first lease', async () => {
  const lock = await locks.acquire('key', { lease: 1_500 });
  let failed = 0;
  proxy.onRequest((request) => {
    if (!request.includes(lockName('key')) || failed > 0) return 'pass';
    failed++;
    return 'cut';
  });
  await sleep(2_500);
  expect(failed).toBe(1);
  expect(lock.signal.aborted).toBe(false);
  expect(await redis.client().get(lockName('key'))).toBe(lock.token);
  expect(await lock.release()).toBe(true);
});

test('L2: renewals fail until the lease ends: the signal aborts by then, and nobody is told of a rejection', async () => {
  const unhandled: unknown[] = [];
  const onUnhandled = (reason: unknown) => unhandled.push(reason);
  process.on('unhandledRejection', onUnhandled);
  const lock = await locks.acquire('key', { lease: 1_000 });
  const acquiredAt = performance.now();
  proxy.hold();
  expect(await aborted(lock.signal)).toBeInstanceOf(LockLostError);
  // Not before its lease, and not long after: no other may have it while this one believes in it.
  expect(performance.now() - acquiredAt).toBeGreaterThan(900);
  const other = await others.acquire('key');
  expect(lock.signal.aborted).toBe(true);
  proxy.release();
  expect(await lock.release()).toBe(false);
  expect(await other.release()).toBe(true);
  await sleep(50);
  process.off('unhandledRejection', onUnhandled);
  expect(unhandled).toEqual([]);
});

test('R6: a held lock is deleted and taken by another: renewal does not take it back', async () => {
  const lock = await locks.acquire('key', { lease: 600 });
  await redis.client().del(lockName('key'));
  const other = await others.acquire('key');
  expect(await aborted(lock.signal)).toBeInstanceOf(LockLostError);
  await expect(lock.extend()).rejects.toThrow(LockLostError);
  expect(await redis.client().get(lockName('key'))).toBe(other.token);
  expect(await other.release()).toBe(true);
});

test('L3: contention, loss and outage are three errors', async () => {
  const held = await others.acquire('key');
  await expect(locks.acquire('key', { wait: 100 })).rejects.toThrow(LockContendedError);
  expect(await locks.tryAcquire('key')).toBeUndefined();
  const lost = await locks.acquire('lost');
  await redis.client().del(lockName('lost'));
  await expect(lost.extend()).rejects.toThrow(LockLostError);
  proxy.hold();
  await expect(locks.acquire('free')).rejects.toThrow(LockUnavailableError);
  await expect(locks.tryAcquire('free')).rejects.toThrow(LockUnavailableError);
  proxy.release();
  await held.release();
  // What did not get through has locked nothing.
  await eventually(async () => (await redis.client().exists(lockName('free'))) === 0);
});

test('L4: the lease counts from the attempt that won, not from the start of waiting', async () => {
  const lease = 1_000;
  const held = await others.acquire('key');
  const acquiring = locks.acquire('key', { lease, renew: false });
  await sleep(800);
  await held.release();
  const lock = await acquiring;
  expect(await redis.pttl(lockName('key'))).toBeGreaterThan(lease / 2);
  expect(lock.expiresAt - Date.now()).toBeGreaterThan(lease / 2);
  expect(lock.signal.aborted).toBe(false);
  expect(await lock.release()).toBe(true);
});

test('fencing tokens grow, whoever takes the lock, also after Redis has lost the counter', async () => {
  const tokens: number[] = [];
  const losses = [
    async () => {},
    () => redis.client().del(`${NAMESPACE}:{key}:fence`),
    () => redis.client().flushall(),
    () => redis.client().script('FLUSH'),
  ];
  for (const lose of [...losses, ...losses]) {
    for (const each of [locks, others, locks]) {
      const lock = await each.acquire('key');
      tokens.push(lock.fencingToken);
      await lock.release();
    }
    await lose();
  }
  expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
  expect(new Set(tokens).size).toBe(tokens.length);
  expect(tokens.every(Number.isSafeInteger)).toBe(true);
  // The counter is no key for ever.
  const lock = await locks.acquire('key');
  expect(await redis.pttl(`${NAMESPACE}:{key}:fence`)).toBeGreaterThan(0);
  await lock.release();
});
