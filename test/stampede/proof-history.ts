/**
 * One random history against the proof rule: three caches, as of three processes, on one Redis, each behind a proxy of its
 * own that delays commands, replies and wake-ups at random.
 *
 * The source is a counter. A writer counts up, then evicts. Each call notes the version of the last eviction that had
 * *resolved* when it started; what it gets, a value or an error, must not be older. That holds as well for calls that may
 * be answered with a stale value: an eviction beats staleness.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createStampede, type LoadOptions, RedisStore, type StampedeCache } from 'nestjs-stampede-cache';
import { startProxy } from '../support/fault-proxy.js';

const PROCESSES = 3;
const DURATION = 1_500;
const LONGEST_DELAY = 60;
const SHORTER_DELAY = 15;
const KEY = 'counter';
/** Far above the delays: who is cut off from Redis is free to answer with what it has, and nobody is to be here. */
const commandTimeout = 5_000;
const logger = { log() {}, warn() {}, error() {} };

export interface History {
  readonly seed: number;
  readonly calls: number;
  readonly evictions: number;
  readonly loads: number;
  /** Calls that were answered with a value that was no longer fresh. */
  readonly stale: number;
  /** What went against the rule, or failed without being told to. */
  readonly faults: string[];
}

/** The same numbers for the same seed. */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A loader's failure; its message is the version, and travels to other processes. */
class Failed extends Error {
  readonly code = 'E_PLANNED';
}

interface Loaded {
  readonly version: number;
  readonly store: boolean;
}

export async function runHistory(seed: number, redisPort: number): Promise<History> {
  const random = seeded(seed);
  const between = (least: number, most: number) => least + random() * (most - least);
  const proxies = await Promise.all(Array.from({ length: PROCESSES }, () => startProxy(redisPort)));
  // With a short lease and loads of its length, renewals are part of the history.
  const isShort = random() < 0.5;
  const [lease, longestLoad] = isShort ? [300, 400] : [5_000, 100];
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
      { commandTimeout, defaults: { lease } },
    ),
  );
  await Promise.all(stampedes.map(({ start }) => start()));
  // All are slow, or one is: then others can evict and be answered while one reply is on its way to it.
  const oneIsSlow = random() < 0.5;
  for (const [index, proxy] of proxies.entries()) {
    proxy.delay({ min: 0, max: oneIsSlow && index > 0 ? SHORTER_DELAY : LONGEST_DELAY, random });
  }

  const caches = stampedes.map(({ cache }) => cache);
  const history = { seed, calls: 0, evictions: 0, loads: 0, stale: 0, faults: [] as string[] };
  for (const { events } of caches) events.subscribe(({ type }) => type === 'stale' && history.stale++);
  let source = 0;
  let acknowledged = 0;
  /** Evictions that follow a load. */
  const also: Promise<void>[] = [];

  async function evict(): Promise<void> {
    history.evictions++;
    const version = ++source;
    await caches[Math.floor(random() * PROCESSES)]!.evict(KEY);
    acknowledged = Math.max(acknowledged, version);
  }

  async function load(): Promise<Loaded> {
    history.loads++;
    const version = source;
    await sleep(between(0, longestLoad));
    const ending = random();
    // About when the others find what this came to.
    if (!isShort && random() < 0.5) also.push(sleep(between(20, 200)).then(evict));
    if (ending < 0.25) throw new Failed(String(version));
    return { version, store: ending < 0.75 };
  }

  const options: LoadOptions<Loaded> = { ttl: '60s', cacheIf: ({ store }) => store };
  // In some histories values are soon stale, and who may have that depends on the call.
  const isStale = random() < 0.7;
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

  async function call(cache: StampedeCache): Promise<void> {
    history.calls++;
    const noted = acknowledged;
    const version = await cache.getOrLoad(KEY, load, optionsOfCall()).then(
      (value) => value.version,
      (error) => (error.code === 'E_PLANNED' ? Number(error.message) : String(error)),
    );
    if (typeof version === 'string') history.faults.push(version);
    else if (version < noted)
      history.faults.push(`version ${version} for a call that began after ${noted} was evicted`);
  }

  async function repeat(least: number, most: number, act: () => Promise<void>): Promise<void> {
    const until = performance.now() + DURATION;
    const acts: Promise<void>[] = [];
    while (performance.now() < until) {
      acts.push(act());
      await sleep(between(least, most));
    }
    await Promise.all(acts);
  }

  try {
    await Promise.all([
      repeat(5, isStale ? 400 : isShort ? 100 : 200, evict),
      ...caches.map((cache) => repeat(1, 15, () => call(cache))),
    ]);
    await Promise.all(also);
  } catch (error) {
    history.faults.push(String(error));
  }
  await Promise.all(stampedes.map(({ close }) => close()));
  await Promise.all(proxies.map((proxy) => proxy.stop()));
  return history;
}
