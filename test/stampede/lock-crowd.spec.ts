import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { type Crowd, now, print, startCrowd } from './crowd.js';

const PROCESSES = 4;
const WAITERS = 200;

let redis: RedisServer;
let crowd: Crowd;

beforeAll(async () => {
  redis = await startRedis();
  crowd = await startCrowd({ connection: redis.url }, PROCESSES + 1);
  await crowd.untilListening(redis);
});
afterAll(async () => {
  await crowd.stop();
  await redis.stop();
});

test('L5: 200 waiters in 4 processes: waiting costs by the process, and each has the lock alone', async () => {
  const [holder, ...others] = crowd.processes;
  const lockName = `${crowd.namespace}:{key}:mutex`;
  const options = { wait: '30s' } as const;
  const holding = holder!.call('lock', 'key', { callers: 1, hold: 3_500, options });
  await eventually(() => redis.client().exists(lockName), { every: 5 });
  await redis.resetStats();
  const asked = others.map((each) => each.call('lock', 'key', { callers: WAITERS / PROCESSES, hold: 2, options }));
  // Until here they could only wait, for two seconds: 4 to 8 polls a process.
  await sleep(2_000);
  const { evalsha = 0, append = 0 } = await redis.commandStats();
  await holding;
  const from = now();
  print(`waiting for 2 s: ${evalsha} scripts for ${WAITERS} waiters`);
  expect(append).toBeLessThan(4 * PROCESSES);
  expect(evalsha).toBeLessThan(20 * PROCESSES);

  const all = (await Promise.all(asked)).flat().sort((a, b) => a.from - b.from);
  const total = await redis.commandCount();
  print(`${WAITERS} locks in a row: ${total} commands, ${(now() - from).toFixed(0)} ms`);
  expect(all).toHaveLength(WAITERS);
  for (const [index, lock] of all.entries()) {
    const before = all[index - 1];
    if (!before) continue;
    expect(lock.fencingToken).toBeGreaterThan(before.fencingToken);
    expect(lock.from).toBeGreaterThanOrEqual(before.until);
  }
  // Of each lock: to take and to end it, and one attempt of each other process.
  expect(total / WAITERS).toBeLessThan(60);
});
