import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { type Crowd, now, print, type Question, startCrowd } from './crowd.js';

const PROCESSES = 4;
const CALLERS = 50;
const DURATION = 5_000;
const WARM_UP = 2_000;
const TTL = 300;
const LOAD = 50;
/** Milliseconds between an answer and the next question. */
const PAUSE = 20;

let redis: RedisServer;
let crowd: Crowd;

beforeAll(async () => {
  redis = await startRedis();
  crowd = await startCrowd({ connection: redis.url }, PROCESSES);
  await crowd.untilListening(redis);
});
afterAll(async () => {
  await crowd.stop();
  await redis.stop();
});

function percentile(numbers: readonly number[], percent: number): number {
  return [...numbers].sort((a, b) => a - b)[Math.floor((numbers.length * percent) / 100)] ?? Number.NaN;
}

/** All ask for one key without a pause, for a while. */
async function run(key: string, options: Question['options']) {
  const question = { callers: CALLERS, load: { takes: LOAD, gives: 'x' }, options, pause: PAUSE };
  // Compiled and connected, as a server that is measured is.
  await Promise.all(
    crowd.processes.map((each) => each.call('keepAsking', 'warm', { ...question, until: now() + WARM_UP })),
  );
  // The first load, for which all would wait, is no part of it.
  await crowd.processes[0]!.call('ask', key, { load: question.load, options });
  const until = now() + DURATION;
  const asked = await Promise.all(crowd.processes.map((each) => each.call('keepAsking', key, { ...question, until })));
  const loads = crowd.loads(key);
  const gaps = loads.slice(1).map(({ beganAt }, i) => beganAt - (loads[i]?.endedAt ?? Number.POSITIVE_INFINITY));
  const times = asked.flatMap(({ times }) => times);
  return {
    loads: loads.length,
    /** One, and then another each time that the last value has been there for its `ttl`. */
    ideal: 1 + Math.floor(DURATION / (TTL + LOAD)),
    leastGap: Math.min(...gaps),
    answers: times.length,
    p50: percentile(times, 50),
    p99: percentile(times, 99),
    lateness: percentile(
      asked.flatMap(({ lateness }) => lateness),
      99,
    ),
    errors: asked.flatMap(({ error }) => error ?? []),
  };
}

describe(`${PROCESSES} processes, ${CALLERS} callers each, a ttl of ${TTL} ms and a loader of ${LOAD} ms, for ${DURATION} ms`, () => {
  test.each([
    ['without windows', {}, LOAD * 4],
    ['with staleWhileRevalidate', { staleWhileRevalidate: '5s' } as const, 50],
  ])(
    '%s: loads as often as it expires, never two at once',
    async (name, windows, mostP99) => {
      const { loads, ideal, leastGap, answers, p50, p99, lateness, errors } = await run(name, { ttl: TTL, ...windows });
      print(`${name}: ${loads} loads (ideal ${ideal}), ${answers} answers`);
      print(
        `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms; p99 of a bare timer's lateness ${lateness.toFixed(1)} ms`,
      );
      expect(errors).toEqual([]);
      expect(loads).toBeLessThanOrEqual(1.1 * ideal);
      expect(loads).toBeGreaterThan(ideal / 2);
      expect(leastGap).toBeGreaterThanOrEqual(0);
      // A machine that is busy with other things is late with everything.
      expect(p99).toBeLessThan(mostP99 + 2 * lateness);
    },
    30_000,
  );
});
