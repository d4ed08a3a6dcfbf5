import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { print } from './crowd.js';
import { type History, runHistory } from './proof-history.js';

const SEEDS = 200;
const SEEDS_WITH_NEAR = 60;
const AT_ONCE = 10;
/** PROOF_SEED=17 runs that history alone. */
const FIRST_SEED = Number(process.env['PROOF_SEED'] ?? 1);
const LAST_SEED = process.env['PROOF_SEED'] ? FIRST_SEED : SEEDS;
const LAST_SEED_WITH_NEAR = Math.max(FIRST_SEED, Math.min(LAST_SEED, SEEDS_WITH_NEAR));

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

async function runAll(
  last: number,
  hasNear: boolean,
): Promise<(of: 'calls' | 'evictions' | 'loads' | 'stale' | 'near') => number> {
  const histories: History[] = [];
  for (let first = FIRST_SEED; first <= last; first += AT_ONCE) {
    const seeds = Array.from({ length: Math.min(AT_ONCE, last - first + 1) }, (_, index) => first + index);
    histories.push(...(await Promise.all(seeds.map((seed) => runHistory(seed, redis.port, hasNear)))));
  }
  const sum = (of: 'calls' | 'evictions' | 'loads' | 'stale' | 'near') =>
    histories.reduce((total, history) => total + history[of], 0);
  print(
    `seeds ${FIRST_SEED} to ${last}: ${sum('calls')} calls, ${sum('evictions')} evictions, ${sum('loads')} loads, ` +
      `${sum('stale')} stale answers, ${sum('near')} near hits`,
  );
  const wrong = histories.filter(({ faults }) => faults.length > 0);
  for (const { seed, faults } of wrong) print(`seed ${seed}: ${faults.length} faults, such as ${faults[0]}`);
  expect(wrong.map(({ seed }) => seed)).toEqual([]);
  return sum;
}

test('in 200 random histories no call gets what was loaded before the last eviction that it could know of', async () => {
  const sum = await runAll(LAST_SEED, false);
  expect(sum('stale')).toBeGreaterThan(0);
}, 180_000);

test('with near caches no process gets what was loaded before the last eviction of its own, and in the end nobody', async () => {
  const sum = await runAll(LAST_SEED_WITH_NEAR, true);
  expect(sum('near')).toBeGreaterThan(0);
}, 120_000);
