// A process with one instance of a system. `processes.mjs` starts it and says what to do.
import { Session } from 'node:inspector/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { open } from '../systems.mjs';
import { percentile, seededRandom } from './statistics.mjs';
import { DeadlineError, now, until, within } from './time.mjs';
import { makeValue } from './values.mjs';

/** No caller waits longer; one that does hangs. */
const HANGS = 20_000;

let system;
/** The harness's own connection, for the counts of loads. */
let control;
let unhandled = 0;

process.on('unhandledRejection', (error) => {
  // It would end a process that isn't a benchmark's.
  if (unhandled++ === 0) console.error(`${process.argv[2]}: unhandled rejection: ${messageOf(error)}`);
});
process.on('disconnect', () => process.exit());
process.on('message', async ({ id, command, options }) => {
  try {
    process.send({ id, result: await commands[command](options) });
    if (command === 'close') process.disconnect();
  } catch (error) {
    process.send({ id, error: messageOf(error) });
  }
});

const commands = {
  async open({ system: name, port, ttl = 600_000, lease = 10_000, wait = 5_000 }) {
    const start = now();
    system = await open(name, { port, ttl, lease, wait });
    const opened = now();
    control = new Redis({ host: '127.0.0.1', port });
    await control.ping();
    return { methods: Object.keys(system), ttl: system.ttl ?? ttl, opening: opened - start, openedAt: opened };
  },

  /** Stores so many values, by the system itself: each has a format of its own. */
  async fill({ prefix, count, callers = 64, bytes }) {
    await inParallel(callers, count, (i) => getOrLoad(`${prefix}${i}`, async () => makeValue(`${prefix}${i}`, bytes)));
  },

  /** So many calls, by so many callers who each call again when they were answered; of keys at random, or each of its own. */
  async calls({ prefix, count, callers, distinct, cold = false, seed = 1, bytes }) {
    const random = seededRandom(seed);
    const keys = Array.from({ length: cold ? count : distinct }, (_, i) => `${prefix}${i}`);
    const order = Uint32Array.from({ length: count }, (_, i) => (cold ? i : Math.floor(random() * distinct)));
    const times = new Float64Array(count);
    const value = makeValue('', bytes);
    let loads = 0;
    let wrong = 0;
    // No full collection here: V8 throws away much of the compiled code with it, and this would measure how it compiles again.
    const cpu = process.cpuUsage();
    const start = performance.now();
    await inParallel(callers, count, async (i) => {
      const key = keys[order[i]];
      const asked = performance.now();
      const found = await system.getOrLoad(key, async () => {
        loads++;
        return { ...value, key };
      });
      times[i] = performance.now() - asked;
      if (found.key !== key) wrong++;
    });
    const duration = performance.now() - start;
    const { user, system: kernel } = process.cpuUsage(cpu);
    if (wrong > 0) throw new Error(`${wrong} wrong values`);
    if (loads !== (cold ? count : 0))
      throw new Error(`${loads} loads in ${count} calls, of which ${cold ? 'all' : 'none'} should load`);
    times.sort();
    return {
      perSecond: (count / duration) * 1000,
      median: percentile(times, 50) * 1000,
      p99: percentile(times, 99) * 1000,
      cpu: user + kernel,
    };
  },

  /** So many callers ask for one key at one moment. */
  async crowd({ key, callers, at, loadTime }) {
    const log = newLog();
    const loader = countedLoader(key, loadTime, log);
    const times = [];
    await until(at);
    await Promise.all(Array.from({ length: callers }, () => ask(key, loader, log, times)));
    return { ...log, times, unhandled };
  },

  /** So many callers ask for one key again and again, with a pause of `pause` on average. */
  async keepAsking({ key, callers, at, duration, loadTime, pause, ttl }) {
    const log = newLog();
    const load = countedLoader(key, loadTime, log);
    const loader = async () => ({ ...(await load()), loadedAt: now() });
    const times = [];
    let oldest = 0;
    await until(at);
    const insist = async () => {
      while (now() < at + duration) {
        const value = await ask(key, loader, log, times);
        if (value) oldest = Math.max(oldest, now() - value.loadedAt);
        await sleep(pause * (0.5 + Math.random()));
      }
    };
    await Promise.all(Array.from({ length: callers }, insist));
    return { ...log, times, pastTtl: Math.max(0, oldest - ttl), unhandled };
  },

  /** Begins a load that doesn't end, and tells when it has begun. */
  hold({ key }) {
    const endless = getOrLoad(key, async () => {
      process.send({ told: 'loading', result: now() });
      await sleep(60_000);
    });
    endless.catch(() => {});
  },

  /** Asks for a key; says when the loader ran, if it did, and what came of it. The value is the version and the key. */
  async ask({ key, loadTime = 0, version = 0, tell = false }) {
    let loadedAt = null;
    const loader = async () => {
      loadedAt = now();
      if (tell) process.send({ told: 'loading', result: loadedAt });
      await sleep(loadTime);
      return { key, version };
    };
    const askedAt = now();
    try {
      const value = await within(HANGS, 'a caller', system.getOrLoad(key, loader));
      return { askedAt, loadedAt, answeredAt: now(), version: value.version };
    } catch (error) {
      return { askedAt, loadedAt, answeredAt: now(), error: messageOf(error) };
    }
  },

  async evict({ key }) {
    const start = now();
    await system.evict(key);
    return now() - start;
  },

  /** Takes and releases so many locks, each of its own name. */
  async locks({ prefix, count, callers }) {
    const cpu = process.cpuUsage();
    const start = performance.now();
    await inParallel(callers, count, async (i) => {
      const release = await system.lock(`${prefix}${i}`);
      await release();
    });
    const duration = performance.now() - start;
    const { user, system: kernel } = process.cpuUsage(cpu);
    return { perSecond: (count / duration) * 1000, cpu: user + kernel };
  },

  /** So many callers who each want one lock once and keep it for a while. */
  async queue({ name, callers, at, hold }) {
    const held = [];
    const errors = {};
    await until(at);
    const take = async () => {
      try {
        const release = await within(HANGS, 'a caller', system.lock(name));
        const from = now();
        await sleep(hold);
        held.push([from, now()]);
        await release();
      } catch (error) {
        note(errors, error);
      }
    };
    await Promise.all(Array.from({ length: callers }, take));
    return { held, errors, unhandled };
  },

  /** So many keys at once, again and again: keys that are stored, or new ones each time. */
  async bulk({ prefix, size, count, cold = false }) {
    const times = [];
    let loads = 0;
    const load = async (missing) => {
      loads += missing.length;
      return missing.map((key) => makeValue(key));
    };
    const cpu = process.cpuUsage();
    for (let call = 0; call < count; call++) {
      const keys = Array.from({ length: size }, (_, i) => (cold ? `${prefix}${call}:${i}` : `${prefix}${i}`));
      const start = performance.now();
      const values = await system.getMany(keys, load);
      times.push(performance.now() - start);
      const wrong = keys.filter((key, i) => values[i]?.key !== key);
      if (wrong.length > 0) throw new Error(`${wrong.length} of ${size} values are wrong`);
    }
    const { user, system: kernel } = process.cpuUsage(cpu);
    if (loads !== (cold ? count * size : 0)) throw new Error(`${loads} loads`);
    times.sort((left, right) => left - right);
    return { median: percentile(times, 50), cpu: user + kernel };
  },

  /** What the process has in memory, in bytes, when the garbage is gone. */
  async memory() {
    for (let i = 0; i < 3; i++) {
      globalThis.gc();
      await sleep(50);
    }
    const { heapUsed, rss } = process.memoryUsage();
    return { heapUsed, rss };
  },

  /** CPU so far, in µs. */
  cpu() {
    const { user, system: kernel } = process.cpuUsage();
    return user + kernel;
  },

  /** Other commands, while V8's sampling profiler looks. */
  async profile({ command, interval, ...options }) {
    const session = new Session();
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.setSamplingInterval', { interval });
    await session.post('Profiler.start');
    const result = await commands[command](options);
    const { profile } = await session.post('Profiler.stop');
    session.disconnect();
    return { result, profile };
  },

  async close() {
    await Promise.race([system?.close(), sleep(1_000)]);
    control?.disconnect();
  },
};

function getOrLoad(key, loader) {
  return system.getOrLoad(key, loader);
}

async function inParallel(callers, count, call) {
  let next = 0;
  const caller = async () => {
    while (next < count) await call(next++);
  };
  await Promise.all(Array.from({ length: callers }, caller));
}

function newLog() {
  return { loads: 0, atOnce: 0, loaded: [], lastAnswer: 0, wrong: 0, errors: {}, hung: 0 };
}

/** Counts itself here and, across processes, how many run at once. */
function countedLoader(key, loadTime, log) {
  return async () => {
    const from = now();
    log.loads++;
    const counted = control.hincrby('bench:loads', key, 1).then((running) => {
      log.atOnce = Math.max(log.atOnce, running);
    });
    await Promise.all([counted, sleep(loadTime)]);
    control.hincrby('bench:loads', key, -1);
    log.loaded.push([from, now()]);
    return makeValue(key);
  };
}

/** @returns the value, or undefined if there was an error, which is counted */
async function ask(key, loader, log, times) {
  const asked = now();
  try {
    const value = await within(HANGS, 'a caller', system.getOrLoad(key, loader));
    log.lastAnswer = now();
    times.push(log.lastAnswer - asked);
    if (value.key !== key) log.wrong++;
    return value;
  } catch (error) {
    if (error instanceof DeadlineError) log.hung++;
    else note(log.errors, error);
    return undefined;
  }
}

function note(errors, error) {
  const message = messageOf(error).slice(0, 80);
  errors[message] = (errors[message] ?? 0) + 1;
}

function messageOf(error) {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
