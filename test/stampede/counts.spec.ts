import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type CommandStats, totalCommands } from '../support/command-stats.js';
import { eventually } from '../support/eventually.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { type Crowd, startCrowd } from './crowd.js';

let redis: RedisServer;
let crowd: Crowd;

beforeAll(async () => {
  redis = await startRedis();
  crowd = await startCrowd({ connection: redis.url }, 3);
  await crowd.untilListening(redis);
  // Whoever comes first to a server has to teach it the scripts.
  await crowd.ask('warm-up', {});
  await crowd.processes[0]!.call('evict', 'warm-up');
});
afterAll(async () => {
  await crowd.stop();
  await redis.stop();
});
beforeEach(() => redis.resetStats());

/** Commands that a client sent: reads and scripts, not what ran inside these. */
function sent({ get = 0, mget = 0, evalsha = 0, eval: evals = 0 }: CommandStats, readsInScripts: number): number {
  return get + mget + evalsha + evals - readsInScripts;
}

test('a hit is one read, and no script', async () => {
  const [first, second] = crowd.processes;
  await first!.call('ask', 'hit', { load: { gives: 'x' } });
  await redis.resetStats();
  await second!.call('ask', 'hit', { callers: 100 });
  const stats = await redis.commandStats();
  expect(totalCommands(stats)).toBe(1);
  expect(sent(stats, 0)).toBe(1);
});

test('a lone miss is three commands sent: read, lead, end; eight with those inside of scripts', async () => {
  await crowd.processes[0]!.call('ask', 'miss', { callers: 100, load: { takes: 20 } });
  const stats = await redis.commandStats();
  // Inside, `lead` reads once and `end` reads once.
  expect(sent(stats, 2)).toBe(3);
  expect(stats).toMatchObject({ evalsha: 2 });
  expect(totalCommands(stats)).toBe(8);
  expect(stats).not.toHaveProperty('publish');
});

test('a process that follows, whatever its number of callers, is seven more', async () => {
  const [first, ...others] = crowd.processes;
  const asked = [first!.call('ask', 'follow', { load: { takes: 200 } })];
  await eventually(() => crowd.loads('follow')[0], { every: 5 });
  asked.push(...others.map((other) => other.call('ask', 'follow', { callers: 100 })));
  await Promise.all(asked);
  const stats = await redis.commandStats();
  expect(totalCommands(stats)).toBe(8 + 2 * 7);
  expect(stats).toMatchObject({ publish: 2, append: 2 });
  expect(crowd.loads('follow')).toHaveLength(1);
});

test('an eviction is three commands, a message to near caches, and one to each process that is concerned', async () => {
  const [first, second, third] = crowd.processes;
  await first!.call('evict', 'idle');
  expect(await redis.commandStats()).toEqual({ evalsha: 1, get: 1, del: 1, publish: 1 });

  const led = first!.call('ask', 'busy', { load: { takes: 1_500 } });
  await eventually(() => crowd.loads('busy')[0], { every: 5 });
  const followed = second!.call('ask', 'busy', { load: { takes: 1_500 } });
  await eventually(async () => (await redis.client().get(crowd.lockName('busy')))?.includes(','), { every: 5 });
  await redis.resetStats();
  await third!.call('evict', 'busy');
  // To the one that loads, the one that waits, and near caches.
  expect(await redis.commandStats()).toMatchObject({ publish: 3, del: 1 });
  await Promise.all([led, followed]);
});
