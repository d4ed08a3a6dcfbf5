// One process of a crowd: `crowd.ts` starts several of these and says what each of them does.
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster } from 'ioredis';
import { createStampede, RedisStore } from 'nestjs-stampede-cache';
import { serve } from '../support/worker.mjs';

const { connection, nodes, namespace, options, log } = JSON.parse(process.env.CROWD);
const pattern = nodes ? new Cluster(nodes, { lazyConnect: true }) : connection;
const warnings = [];
const logger = { log() {}, warn: (message) => warnings.push(message), error: (message) => warnings.push(message) };
const store = new RedisStore({
  connection: pattern,
  namespace,
  commandTimeout: options.commandTimeout ?? 500,
  logger,
});
const { cache, locks, start } = createStampede({ store, logger }, options);

/** The same in all processes of a machine. */
const now = () => Number(process.hrtime.bigint()) / 1e6;

/** A load is told to a file, so that it counts even if this process is killed in the middle of it. */
function note(what, ...keys) {
  const lines = keys.map((key) => JSON.stringify({ what, key, pid: process.pid, at: now() }));
  appendFileSync(log, `${lines.join('\n')}\n`);
}

function loaderOf(key, { takes = 0, gives, fails }) {
  return async () => {
    note('begins', key);
    await sleep(takes);
    note('ends', key);
    if (fails) throw Object.assign(new RangeError(fails), { code: 'E_LOAD' });
    return gives;
  };
}

async function ask(key, load, { refuse, ...options }) {
  try {
    const value = await cache.getOrLoad(key, loaderOf(key, load), {
      ...options,
      ...(refuse && { cacheIf: () => false }),
    });
    return { value, at: now() };
  } catch ({ name, message, code }) {
    return { error: { name, message, code }, at: now() };
  }
}

/** How many loadMany there were, and of how many keys each. */
const loadedTogether = [];

serve({
  start,
  /** One call for many; each value is `value of <key>`. */
  async askMany(keys, { at = 0, takes = 0, ...options }) {
    await sleep(at - now());
    const load = async (some) => {
      loadedTogether.push(some.length);
      note('begins', ...some);
      await sleep(takes);
      note('ends', ...some);
      return some.map((key) => `value of ${key}`);
    };
    return cache.getOrLoadMany(keys, load, { ttl: '60s', ...options });
  },
  loadedTogether: () => loadedTogether,
  /** So many calls in one tick, at a moment that several processes can share. */
  async ask(key, { callers = 1, at = 0, load = {}, options = { ttl: '60s' } }) {
    await sleep(at - now());
    return Promise.all(Array.from({ length: callers }, () => ask(key, load, options)));
  },
  /** So many callers who each ask again and again until some moment. */
  async keepAsking(key, { callers, until, pause, load, options = { ttl: '60s' }, insistOnValue = false }) {
    const answers = [];
    const times = [];
    const lateness = [];
    const insist = async () => {
      while (now() < until) {
        const askedAt = now();
        const answer = await ask(key, load, options);
        if (insistOnValue && !answer.error && answer.value !== load.gives) {
          answer.error = { name: 'WrongValue', message: `${key} has the value ${answer.value}` };
        }
        answers.push(answer);
        times.push(answer.at - askedAt);
        const resting = now();
        await sleep(pause);
        lateness.push(now() - resting - pause);
      }
    };
    await Promise.all(Array.from({ length: callers }, insist));
    const failed = answers.find(({ error }) => error);
    return { answered: answers.length, times, lateness, ...(failed && { error: failed.error }), lastAt: now() };
  },
  evict: (key) => cache.evict(key),
  get: (key) => cache.get(key),
  warnings: () => warnings,
  /** So many who each want the lock once and keep it for a while. */
  async lock(key, { callers, hold, options }) {
    const take = () =>
      locks.withLock(key, options, async ({ fencingToken }) => {
        const from = now();
        await sleep(hold);
        return { fencingToken, from, until: now() };
      });
    return Promise.all(Array.from({ length: callers }, take));
  },
});
