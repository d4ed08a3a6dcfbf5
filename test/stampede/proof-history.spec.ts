import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { print } from './crowd.js';
import { type History, runHistory } from './proof-history.js';

const SEEDS = 200;
const AT_ONCE = 10;
/** PROOF_SEED=17 runs that history alone. */
const FIRST_SEED = Number(process.env['PROOF_SEED'] ?? 1);
const LAST_SEED = process.env['PROOF_SEED'] ? FIRST_SEED : SEEDS;

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

test('in 200 random histories no call gets what was loaded before the last eviction that it could know of', async () => {
  const histories: History[] = [];
  for (let first = FIRST_SEED; first <= LAST_SEED; first += AT_ONCE) {
    const seeds = Array.from({ length: Math.min(AT_ONCE, LAST_SEED - first + 1) }, (_, index) => first + index);
    histories.push(...(await Promise.all(seeds.map((seed) => runHistory(seed, redis.port)))));
  }
  const sum = (of: 'calls' | 'evictions' | 'loads' | 'stale') =>
    histories.reduce((total, history) => total + history[of], 0);
  print(
    `seeds ${FIRST_SEED} to ${LAST_SEED}: ${sum('calls')} calls, ${sum('evictions')} evictions, ${sum('loads')} loads, ${sum('stale')} stale answers`,
  );
  const wrong = histories.filter(({ faults }) => faults.length > 0);
  for (const { seed, faults } of wrong) print(`seed ${seed}: ${faults.length} faults, such as ${faults[0]}`);
  expect(wrong.map(({ seed }) => seed)).toEqual([]);
  expect(sum('stale')).toBeGreaterThan(0);
}, 180_000);
