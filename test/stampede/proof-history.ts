/**
 * One random history against the proof rule: three caches, as of three processes, on one Redis, each behind a proxy of its
 * own that delays commands, replies and wake-ups at random.
 *
 * The source is a counter. A writer counts up, then evicts. Each call notes the version of the last eviction that had
 * *resolved* when it started; what it gets, a value or an error, must not be older. With near caches that holds for the
 * evictions of the call's own process; the others' hold for it as soon as they have been told.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createStampede, type LoadOptions, RedisStore, type StampedeCache } from 'nestjs-stampede-cache';
import { eventually } from '../support/eventually.js';
import { startProxy } from '../support/fault-proxy.js';
import { seeded } from '../support/seeded.js';

const PROCESSES = 3;
const DURATION = 1_500;
const LONGEST_DELAY = 60;
const SHORTER_DELAY = 15;
const KEYS = 4;
/** Of each process, and of each key. */
const FEWEST_CALLS = 30;
const FEWEST_EVICTIONS = 4;
/** Far above the delays: who is cut off from Redis is free to answer with what it has, and nobody is to be here. */
const commandTimeout = 5_000;
const logger = { log() {}, warn() {}, error() {} };

export interface History {
  readonly seed: number;
  calls: number;
  evictions: number;
  loads: number;
  /** Calls that were answered with a value that was no longer fresh. */
  stale: number;
  /** Calls that a near cache answered. */
  near: number;
  /** What went against the rule, or failed without being told to. */
  readonly faults: string[];
}

/** A loader's failure; its message is the version, and travels to other processes. */
class Failed extends Error {
  readonly code = 'E_PLANNED';
}

interface Loaded {
  readonly version: number;
  readonly store: boolean;
}

/** Runs several keys at once, each with a source of its own, over the same connections. */
export async function runHistory(seed: number, redisPort: number, hasNear = false): Promise<History> {
  const random = seeded(seed);
  const proxies = await Promise.all(Array.from({ length: PROCESSES }, () => startProxy(redisPort)));
  const stampedes = proxies.map(({ port }, index) =>
    createStampede(
      {
        store: new RedisStore({
          connection: { port },
          namespace: `history-${seed}`,
          commandTimeout,
          connectTimeout: commandTimeout,
          logger,
        }),
        random: seeded(seed * PROCESSES + index),
      },
      { commandTimeout, near: hasNear && { max: 100 } },
    ),
  );
  await Promise.all(stampedes.map(({ start }) => start()));
  // All are slow, or one is: then others can evict and be answered while one reply is on its way to it.
  const oneIsSlow = random() < 0.6;
  for (const [index, proxy] of proxies.entries()) {
    proxy.delay({ min: 0, max: oneIsSlow && index > 0 ? SHORTER_DELAY : LONGEST_DELAY, random });
  }
  const history: History = { seed, calls: 0, evictions: 0, loads: 0, stale: 0, near: 0, faults: [] };
  const caches = stampedes.map(({ cache }) => cache);
  for (const { events } of caches) {
    events.subscribe(({ type }) => type === 'stale' && history.stale++);
    events.subscribe(({ type }) => type === 'near-hit' && history.near++);
  }
  // In some histories values are soon stale, and who may have that depends on the call. Those have one key, asked for often.
  const isStale = random() < 0.5;
  const keys = Array.from({ length: isStale ? 1 : KEYS }, (_, index) => `counter-${index}`);
  await Promise.all(keys.map((key) => runKey(key, caches, random, history, isStale, hasNear)));
  await Promise.all(stampedes.map(({ close }) => close()));
  await Promise.all(proxies.map((proxy) => proxy.stop()));
  return history;
}

async function runKey(
  key: string,
  caches: readonly StampedeCache[],
  random: () => number,
  history: History,
  isStale: boolean,
  hasNear: boolean,
): Promise<void> {
  const between = (least: number, most: number) => least + random() * (most - least);
  // With a short lease and loads of its length, renewals are part of the history.
  const isShort = random() < 0.5;
  const [lease, longestLoad] = isShort ? [300, 400] : [5_000, 100];
  const options: LoadOptions<Loaded> = { ttl: '60s', lease, cacheIf: ({ store }) => store };
  // Where the first process, which may be the slow one, asks much more often than the others, it leads more often too.
  const longestPause = [15, random() < 0.5 ? 30 : 250];
  const ttl = between(1, 30);
  const windows: Partial<LoadOptions>[] = [
    {},
    { staleWhileRevalidate: '1s' },
    { staleWhileRevalidate: 100, staleIfError: '60s', errorHoldOff: 100 },
    { staleIfError: '60s', errorHoldOff: 0 },
    { staleIfError: '60s', softTimeout: 20 },
    { earlyRefresh: 3 },
  ];
  const optionsOfCall = (): LoadOptions<Loaded> =>
    isStale ? { ...options, ttl, ...windows[Math.floor(random() * windows.length)] } : options;
  let source = 0;
  /** By process; without near caches what one has evicted holds for all of them. */
  const acknowledged = caches.map(() => 0);
  /** Evictions that follow a load. */
  const also: Promise<void>[] = [];
  /** Background loads may end later than the last call; the caches are closing then. */
  let over = false;

  async function evict(): Promise<void> {
    history.evictions++;
    const version = ++source;
    const by = Math.floor(random() * PROCESSES);
    await caches[by]!.evict(key);
    for (const [index, earlier] of acknowledged.entries()) {
      if (index === by || !hasNear) acknowledged[index] = Math.max(earlier, version);
    }
  }

  async function load(): Promise<Loaded> {
    history.loads++;
    const version = source;
    await sleep(between(0, longestLoad));
    const ending = random();
    // About when the others find what this came to.
    if (!isShort && random() < 0.5) also.push(sleep(between(20, 200)).then(() => (over ? undefined : evict())));
    if (ending < 0.3) throw new Failed(String(version));
    return { version, store: ending < 0.7 };
  }

  async function call(cache: StampedeCache, index: number): Promise<void> {
    history.calls++;
    const noted = acknowledged[index] ?? 0;
    const version = await cache.getOrLoad(key, load, optionsOfCall()).then(
      (value) => value.version,
      (error) => (error.code === 'E_PLANNED' ? Number(error.message) : String(error)),
    );
    if (typeof version === 'string') history.faults.push(version);
    else if (version < noted) {
      history.faults.push(`version ${version} for a call that began after ${noted} was evicted`);
    }
  }

  async function repeat(count: number, least: number, most: number, act: () => Promise<void>): Promise<void> {
    const until = performance.now() + DURATION;
    const acts: Promise<void>[] = [];
    // On a busy machine little happens in that time, and a history in which little happens proves little.
    while (performance.now() < until || acts.length < count) {
      acts.push(act());
      await sleep(between(least, most));
    }
    await Promise.all(acts);
  }

  try {
    await Promise.all([
      repeat(FEWEST_EVICTIONS, 5, isStale ? 600 : isShort ? 350 : 200, evict),
      ...caches.map((cache, index) =>
        repeat(FEWEST_CALLS, 1, isStale ? 15 : longestPause[Math.min(index, 1)]!, () => call(cache, index)),
      ),
    ]);
    over = true;
    await Promise.all(also);
    // All have been told in the end.
    for (const cache of hasNear ? caches : []) {
      await eventually(async () => (await cache.getOrLoad(key, load, options)).version >= Math.max(...acknowledged));
    }
  } catch (error) {
    history.faults.push(String(error));
  }
}
