/**
 * One script of one process meets one fault: what its caller gets, what is stored in the end, and what stays locked.
 *
 * The process under test is behind a proxy; its rival, which sets or evicts the key in the middle of it, is not.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createStampede, RedisStore, type Stampede, type Store } from 'nestjs-stampede-cache';
import { eventually } from '../support/eventually.js';
import { type FaultProxy, startProxy, type Verdict } from '../support/fault-proxy.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';

/** Strikes as the script is sent; `undo` ends it. */
export interface Fault {
  strike(place: Place): void;
  undo?(place: Place): Promise<unknown>;
  /** Milliseconds from the strike until it is undone; 300 if left out. */
  readonly lasts?: number;
}

export interface Place {
  readonly redis: RedisServer;
  readonly proxy: FaultProxy;
}

/** What the process under test does, and the step at which the fault strikes. */
export type Act = 'lead' | 'end' | 'renew' | 'evict' | 'set: claim' | 'set: write';

/** What the rival does, and when: in the middle, or once the process under test has its answer. `idle`: it only looks. */
export type Rival = 'sets' | 'evicts' | 'sets later' | 'idle';

export interface Finding {
  /** Milliseconds from the call to its end, less what the loader took, and less what this process stood still. */
  readonly overhead: number;
  readonly outcome: string;
  /** What the next caller in the rival's process got, if the rival did anything. */
  readonly next: unknown;
  /** What is stored, and whether the key is locked, after everything that was under way has arrived. */
  readonly stored: unknown;
  readonly lockLeft: boolean;
  /** The same at the moment when the process under test had its answer; only asked where the rival is idle. */
  readonly lockLeftAtFirst: boolean;
}

export const LOADS: readonly Act[] = ['lead', 'end', 'renew'];
export const WRITES: readonly Act[] = ['evict', 'set: claim', 'set: write'];

/** So short that a lock which was taken when the fault struck has ended before what was delayed arrives. */
const LEASE = 1_000;
const LONG_DELAY = 2_000;
const FAULT_LASTS = 300;
const TICK = 10;
const KEY = 'key';
const NAMESPACE = 'ambiguity';
const LOCK = `${NAMESPACE}:{${KEY}}:lock`;
const logger = { log() {}, warn() {}, error() {} };

export const FULL = 'Redis is full';

export const FAULTS: Record<string, Fault> = {
  'request delayed 2 s': { strike: ({ proxy }) => onceAt(proxy, { delay: LONG_DELAY }) },
  'reply dropped after it ran': { strike: ({ proxy }) => onceAt(proxy, 'dropReply') },
  'socket cut before it ran': { strike: ({ proxy }) => onceAt(proxy, 'cut') },
  'socket cut after it ran': { strike: ({ proxy }) => onceAt(proxy, 'cutReply') },
  // What it knew when the connection was lost, others have changed when it is there again.
  'no connection for 1.2 s': {
    strike({ proxy }) {
      proxy.refuse();
      proxy.cut();
    },
    undo: ({ proxy }) => proxy.accept(),
    lasts: 1_200,
  },
  'Redis down and up': {
    strike({ redis, proxy }) {
      proxy.hold('toServer');
      void redis.kill().then(() => proxy.release());
    },
    undo: ({ redis }) => redis.restart(),
  },
  [FULL]: {
    strike({ redis, proxy }) {
      proxy.hold('toServer');
      void redis
        .client()
        .config('SET', 'maxmemory', '1mb', 'maxmemory-policy', 'noeviction')
        .finally(() => proxy.release());
    },
    undo: ({ redis }) => redis.client().config('SET', 'maxmemory', '0'),
  },
};

/** The next script is met by the fault; what comes after it passes. */
function onceAt(proxy: FaultProxy, verdict: Verdict): void {
  proxy.onRequest((request) => {
    if (!/EVAL/i.test(request)) return 'pass';
    proxy.onRequest(undefined);
    return verdict;
  });
}

/** Acts in a server of its own, so that many can at once. */
export async function meet(act: Act, fault: Fault, rivalDoes: Rival): Promise<Finding> {
  for (let attempt = 1; attempt <= 3; attempt++) {
    const finding = await meetOnce(act, fault, rivalDoes);
    if (finding) return finding;
  }
  throw new Error(`the machine is too busy: '${act}' was never sent`);
}

/** `undefined` when the step was never sent, as when a machine is so busy that the call did without Redis. */
async function meetOnce(act: Act, fault: Fault, rivalDoes: Rival): Promise<Finding | undefined> {
  const redis = await startRedis();
  const proxy = await startProxy(redis.port);
  const place = { redis, proxy };
  let struck: (() => void) | undefined;
  const striking = new Promise<void>((resolve) => {
    struck = resolve;
  });
  const strike = () => {
    fault.strike(place);
    struck?.();
  };
  const subject = create(proxy.port, strikesAt(act), strike);
  const rival = create(redis.port);
  try {
    await Promise.all([subject.start(), rival.start()]);
    return await run(act, fault, rivalDoes, { place, subject, rival, striking });
  } finally {
    proxy.release();
    proxy.onRequest(undefined);
    await Promise.all([subject.close(), rival.close()]);
    await proxy.stop();
    await redis.stop();
  }
}

interface Scene {
  readonly place: Place;
  readonly subject: Stampede;
  readonly rival: Stampede;
  readonly striking: Promise<void>;
}

async function run(act: Act, fault: Fault, rivalDoes: Rival, scene: Scene): Promise<Finding | undefined> {
  const { place, subject, rival, striking } = scene;
  const { redis } = place;
  let source = 'old';
  const loadTime = act === 'renew' ? 600 : 100;
  const loader = async () => {
    const loaded = source;
    await sleep(loadTime);
    return loaded;
  };

  const stopwatch = new Stopwatch();
  let overhead = LOADS.includes(act) ? -loadTime : 0;
  const acting = settled(perform(act, subject, loader)).finally(() => {
    overhead += stopwatch.stop();
  });
  const isStruck = await Promise.race([striking.then(() => true), acting.then(() => false)]);
  if (!isStruck) return undefined;
  const arrivedBy = performance.now() + LONG_DELAY + 200;
  const undone = sleep(fault.lasts ?? FAULT_LASTS).then(() => fault.undo?.(place));
  if (rivalDoes === 'sets later') await acting;
  await sleep(100);

  // From here on what was loaded before is old.
  source = 'new';
  const next = rivalDoes === 'idle' ? undefined : await rivalry(rivalDoes, rival, loader);
  const outcome = await acting;
  const isLocked = async () => (await redis.client().exists(LOCK)) === 1;
  const lockLeftAtFirst = rivalDoes === 'idle' && (await isLocked());
  await undone;
  await sleep(Math.max(0, arrivedBy - performance.now()));
  return {
    overhead,
    outcome,
    next,
    stored: await rival.cache.get(KEY),
    lockLeft: await isLocked(),
    lockLeftAtFirst,
  };
}

/** Sets or evicts, and asks. It may have to try until Redis is there again. */
async function rivalry(does: Rival, { cache }: Stampede, loader: () => Promise<string>): Promise<string> {
  const act = () => (does === 'evicts' ? cache.evict(KEY) : cache.set(KEY, 'new', '60s'));
  await eventually(() => act().then(() => true), { within: 10_000 });
  return cache.getOrLoad(KEY, loader, '60s');
}

function perform(act: Act, { cache }: Stampede, loader: () => Promise<string>): Promise<unknown> {
  if (LOADS.includes(act)) return cache.getOrLoad(KEY, loader, '60s');
  return act === 'evict' ? cache.evict(KEY) : cache.set(KEY, 'old', '60s');
}

async function settled(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    (value) => String(value),
    (error: Error) => error.name,
  );
}

/** Measures time without that in which this process did nothing: many servers start and stop beside it. */
class Stopwatch {
  readonly #startedAt = performance.now();
  #lastTick = performance.now();
  #stoodStill = 0;
  readonly #ticking = setInterval(() => this.#tick(), TICK);

  stop(): number {
    this.#tick();
    clearInterval(this.#ticking);
    return performance.now() - this.#startedAt - this.#stoodStill;
  }

  #tick(): void {
    const late = performance.now() - this.#lastTick - TICK;
    if (late > TICK) this.#stoodStill += late;
    this.#lastTick = performance.now();
  }
}

type Step = 'lead' | 'end' | 'renew' | 'replace';

function strikesAt(act: Act): Step {
  if (act === 'evict' || act === 'set: claim') return 'replace';
  return act === 'set: write' ? 'end' : act;
}

/** A cache whose store calls `strike` just before it sends that step for the first time. */
function create(port: number, step?: Step, strike: () => void = () => {}): Stampede {
  const store: Store = new RedisStore({ connection: { port }, namespace: NAMESPACE, commandTimeout: 500, logger });
  let armed = true;
  const striking = new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        if (name === step && armed) {
          armed = false;
          strike();
        }
        return member.apply(target, args) as unknown;
      };
    },
  });
  return createStampede({ store: striking }, { defaults: { lease: LEASE } });
}
