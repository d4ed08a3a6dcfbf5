/**
 * For trouble that takes its time: a crowd that keeps asking while it happens, and what must be true then and afterwards.
 */
import { expect } from '@jest/globals';
import { type Crowd, now, print } from '../stampede/crowd.js';
import type { CommandStats } from '../support/command-stats.js';
import { eventually } from '../support/eventually.js';
import type { RedisServer } from '../support/redis-server.js';

const TTL = 300;
const LOAD_TIME = 30;
/** By default. */
export const LEASE = 5_000;
/** What a caller may lose by any trouble with Redis, and how soon all is as before. */
const LOST_AT_MOST = 600;
const BACK_WITHIN = 2_000;
/** For a busy machine, beside what the processes measure themselves. */
const SLACK = 500;

const ttl = { ttl: TTL };
const noCommands: CommandStats = {};
/** Each key has a value of its own, so that none is taken for another's. */
const loadOf = (key: string) => ({ takes: LOAD_TIME, gives: `value of ${key}` });

/**
 * All ask for all keys until what happens has happened, and a moment longer. Each call is answered, in time, and each process
 * loads a key no more often than if it were on its own.
 *
 * @param revived milliseconds of a lease that a failover may bring back: its holder has ended, but could tell nobody
 */
export async function insistDuring(
  crowd: Crowd,
  keys: readonly string[],
  happens: () => Promise<unknown>,
  { revived = 0 } = {},
): Promise<void> {
  let until = Number.POSITIVE_INFINITY;
  const began = now();
  const asking = crowd.processes.map(async (each) => {
    const results = [];
    // In portions, since nobody knows how long it takes.
    while (now() < until) {
      const insistence = { callers: 2, until: now() + 500, pause: 10, options: ttl, insistOnValue: true };
      results.push(
        ...(await Promise.all(keys.map((key) => each.call('keepAsking', key, { ...insistence, load: loadOf(key) })))),
      );
    }
    return results;
  });
  await happens().finally(() => {
    until = now() + 500;
  });
  const results = (await Promise.all(asking)).flat();
  const lasted = now() - began;

  const slowest = Math.max(...results.flatMap(({ times }) => times));
  const late = Math.max(...results.flatMap(({ lateness }) => lateness));
  const loads = keys.map((key) => crowd.loads(key).filter(({ beganAt }) => beganAt >= began).length);
  const answered = results.reduce((sum, each) => sum + each.answered, 0);
  print(
    `${answered} answers in ${(lasted / 1_000).toFixed(1)} s, slowest ${slowest.toFixed(0)} ms (timers ` +
      `${late.toFixed(0)} ms late), at most ${Math.max(...loads)} loads of a key`,
  );
  expect(results.map(({ error }) => error).filter((error) => error !== undefined)).toEqual([]);
  expect(slowest).toBeLessThan(2 * LOAD_TIME + LOST_AT_MOST + revived + 2 * late + SLACK);
  const processes = crowd.processes.length;
  for (const count of loads) expect(count).toBeLessThanOrEqual(processes * Math.ceil(lasted / TTL) + processes);
}

/** Soon each key is loaded once, and then found by one read. */
export async function expectRecovery(
  crowd: Crowd,
  prefixes: readonly string[],
  servers: readonly RedisServer[],
): Promise<void> {
  const began = now();
  let round = 0;
  await eventually(
    async () => {
      round += 1;
      const keys = prefixes.map((key) => `${key}, round ${round} of ${began}`);
      await Promise.all(keys.map((key) => crowd.ask(key, { callers: 5, load: loadOf(key) })));
      if (!keys.every((key) => crowd.loads(key).length === 1)) return false;
      await Promise.all(servers.map((node) => node.running && node.resetStats()));
      await Promise.all(keys.map((key) => crowd.ask(key, { load: loadOf(key) })));
      const stats = await Promise.all(servers.map((node) => (node.running ? node.commandStats() : noCommands)));
      const gets = stats.reduce((sum, { get = 0 }) => sum + get, 0);
      return gets === crowd.processes.length * keys.length && stats.every(({ evalsha }) => evalsha === undefined);
    },
    { within: 15_000, every: 50 },
  );
  print(`one load, and then one read a hit, ${(now() - began).toFixed(0)} ms after the end`);
  // Two rounds of asking at a moment in common, at the least.
  expect(now() - began).toBeLessThan(BACK_WITHIN + 2 * SLACK);
}
