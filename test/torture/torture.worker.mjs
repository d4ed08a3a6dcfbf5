// One process of a torture run. What it does is said in `workload.ts`, what it writes down in `history.ts`; it writes each
// line to the source at once, so that it is there even if this process is killed right after.
import { getEventListeners } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Redis } from 'ioredis';
import { serve } from '../support/worker.mjs';

const settings = JSON.parse(process.env.TORTURE);
const { name, seed, connection, namespace, commandTimeout, profiles, lockProfiles, processes } = settings;
const { createStampede, RedisStore } = await import(settings.library);

const now = () => Number(process.hrtime.bigint()) / 1e6;

const socket = connect(settings.source);
const answers = new Map();
let asked = 0;
createInterface({ input: socket }).on('line', (line) => {
  const { ask, version } = JSON.parse(line);
  answers.get(ask)(version);
  answers.delete(ask);
});
const note = (t, line) => socket.write(`${JSON.stringify({ t, process: name, ...line })}\n`);
/** Written down before it resolves; answers the key's version. */
const ask = (t, line) =>
  new Promise((resolve) => {
    answers.set(++asked, resolve);
    note(t, { ask: asked, ...line });
  });

const accident = (what) => note('accident', { at: now(), what });
process.on('warning', (warning) => accident(`warning: ${warning.stack ?? warning}`));

/** The same numbers for the same seed; not in the same order, since that depends on who is answered first. */
let state = seed;
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
}
const between = ([least, most]) => least + random() * (most - least);

const logger = { log() {}, warn() {}, error() {} };
const store = new RedisStore({ connection, namespace, commandTimeout, logger });
const stampede = createStampede({ store, logger }, { commandTimeout, drainTimeout: 3_000 });
const { cache, locks } = stampede;

let count = 0;
const newId = () => `${name}:${++count}`;
/** Of every third call: whoever forgets to take a listener off leaves it here. */
const { signal: shared } = new AbortController();
const open = new Map();
let over = false;
const running = [];

class Planned extends Error {
  code = 'E_PLANNED';
}

function loaderOf(profile, key, variant, callFrom) {
  return async ({ signal }) => {
    const id = newId();
    const from = now();
    const deaf = random() < (profile.deaf ?? 0);
    const aborted = new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        note('aborted', { id, at: now() });
        if (!deaf) reject(signal.reason);
      });
    });
    aborted.catch(() => {});
    const fails = random() < (profile.fails ?? 0);
    try {
      const version = await ask('load', { id, key, profile: profile.name, variant, callFrom, from });
      await Promise.race([nap(between(profile.takes)), aborted]);
      note('loaded', { id, at: now(), came: fails ? 'error' : 'value' });
      if (fails) throw new Planned(id);
      return { id, version };
    } catch (error) {
      if (!(error instanceof Planned)) note('loaded', { id, at: now(), came: 'error' });
      throw error;
    }
  };
}

async function call(profile, key) {
  const variant = Math.floor(random() * profile.variants.length);
  const from = now();
  const line = { key, profile: profile.name, variant, from };
  const mark = {};
  open.set(mark, line);
  const options = {
    ...profile.options,
    ...profile.variants[variant],
    ttl: profile.ttl,
    ...(profile.refuse && { cacheIf: () => false }),
    ...(random() < 0.3 && { signal: shared }),
  };
  const patience = new AbortController();
  if (profile.givesUp) {
    options.signal = patience.signal;
    const giveUp = () => patience.abort(Object.assign(new Error('given up'), { code: 'E_GIVEN_UP' }));
    setTimeout(giveUp, between(profile.givesUp));
  }
  try {
    const value = await cache.getOrLoad(key, loaderOf(profile, key, variant, from), options);
    note('call', { ...line, until: now(), got: value?.id });
  } catch (error) {
    const until = now();
    const { name: errorName, code, message } = Object(error);
    note('call', { ...line, until, error: { name: errorName, code, message: message ?? String(error) } });
  }
  open.delete(mark);
}

async function write(by, profile, key) {
  const id = newId();
  const line = { id, key, by };
  const version = await ask('write', { ...line, from: now() });
  const from = now();
  try {
    if (by === 'set') await cache.set(key, { id, version }, profile.ttl);
    else await cache[by](key);
    note('written', { id, from, until: now(), acknowledged: true });
  } catch (error) {
    note('written', { id, from, until: now(), acknowledged: false, error: `${error?.name}: ${error?.message}` });
  }
}

async function lock(profile) {
  const key = profile.name;
  const askedAt = now();
  const { wait, ...tryOptions } = profile.options;
  const mark = {};
  open.set(mark, { lock: key, from: askedAt });
  let held;
  try {
    const isTry = random() < (profile.tries ?? 0);
    held = isTry ? await locks.tryAcquire(key, tryOptions) : await locks.acquire(key, profile.options);
  } catch (error) {
    note('refused', { key, profile: profile.name, from: askedAt, until: now(), error: error?.name });
  }
  open.delete(mark);
  if (!held) return;
  const id = newId();
  const from = now();
  note('hold', { id, key, profile: profile.name, token: held.token, fencingToken: held.fencingToken, askedAt, from });
  const lost = new Promise((resolve) => {
    const lose = () => {
      note('lost', { id, at: now() });
      resolve();
    };
    if (held.signal.aborted) lose();
    else held.signal.addEventListener('abort', lose);
  });
  const time = between(profile.holds);
  if (random() < (profile.extends ?? 0)) {
    await Promise.race([sleep(time / 2), lost]);
    await held.extend().then(
      () => note('extended', { id, at: now() }),
      () => {},
    );
  }
  await Promise.race([sleep(time), lost]);
  note('releasing', { id, at: now() });
  const wasOurs = await held.release();
  note('released', { id, at: now(), wasOurs });
}

/** Again and again, until it is over. */
async function repeat(pause, act) {
  await sleep(random() * Math.min(between(pause), 500));
  while (!over) {
    await act();
    await nap(between(pause));
  }
}

/** One after the other, whether those before are answered or not. */
async function stream(every, act) {
  const acts = new Set();
  while (!over) {
    const acting = act().then(() => acts.delete(acting));
    acts.add(acting);
    await sleep(between([0, 2 * every]));
  }
  await Promise.all(acts);
}

/** Long pauses, in which it may be over. */
async function nap(milliseconds) {
  for (const until = now() + milliseconds; !over && now() < until; ) await sleep(Math.min(100, until - now()));
}

const isHere = (where) => where === undefined || where === (settings.isFar ? 'far' : 'near');
/** Of how many processes, if not of all, a kind of write comes. */
const writers = (where) => ({ far: 1, near: processes - 1 })[where] ?? processes;

async function writeAgain(by, profile, key) {
  const first = write(by, profile, key);
  if (profile.again) {
    await sleep(between(profile.again));
    await write(by, profile, key);
  }
  await first;
}

let lone = 0;
function begin() {
  for (const profile of profiles) {
    const keys = Array.from({ length: profile.keys }, (_, i) => `${profile.name}-${i}`);
    const keyOf = profile.lone ? () => `${profile.name}-${name}-${++lone}` : undefined;
    for (const key of keys) {
      for (let i = 0; i < profile.callers; i++) {
        running.push(repeat(profile.pause, () => call(profile, keyOf?.() ?? key)));
      }
      if (profile.stream && isHere(profile.stream.from)) {
        running.push(stream(profile.stream.every, () => call(profile, key)));
      }
      if (!isHere(profile.writesFrom)) continue;
      for (const by of ['evict', 'expire', 'set']) {
        const every = profile[`${by}Every`];
        const pause = [0, 2 * every * writers(profile.writesFrom)];
        // Some come in pairs, from two processes at once or nearly so.
        if (every) running.push(repeat(pause, () => writeAgain(by, profile, key)));
      }
    }
  }
  for (const profile of lockProfiles) {
    for (let i = 0; i < profile.callers; i++) running.push(repeat(profile.pause, () => lock(profile)));
  }
}

/** A busy machine stops a process as SIGSTOP does. */
let ticked = now();
const watch = setInterval(() => {
  const at = now();
  if (at - ticked > 150) note('stall', { from: ticked, until: at });
  ticked = at;
}, 20);

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');

/** A connection of our own, the same way: whether a command is answered in time is seen, not guessed. */
const canary = new Redis({
  ...connection,
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  retryStrategy: () => 50,
});
canary.on('error', () => {});
/** A busy machine may be slow to connect anew, too. */
let closed;
canary.on('close', () => {
  closed ??= now();
});
canary.on('ready', () => {
  if (closed !== undefined && now() - closed > commandTimeout / 2) note('slow', { from: closed, until: now() });
  closed = undefined;
});
let listening = false;
const canaryWatch = setInterval(async () => {
  if (listening || canary.status !== 'ready') return;
  listening = true;
  const from = now();
  const isAnswered = await canary.ping().catch(() => false);
  listening = false;
  if (isAnswered && now() - from > commandTimeout / 2) note('slow', { from, until: now() });
}, 50);

async function usage() {
  for (let i = 0; i < 3; i++) {
    collectGarbage();
    await sleep(20);
  }
  const resources = {};
  for (const type of process.getActiveResourcesInfo()) resources[type] = (resources[type] ?? 0) + 1;
  return { resources, heap: process.memoryUsage().heapUsed };
}

/** What never comes must not keep the director waiting. */
const PROBE_PATIENCE = 5_000;
const CLOSE_PATIENCE = 10_000;

async function closeInTime() {
  const giveUp = new AbortController();
  const late = sleep(CLOSE_PATIENCE, 'late', { signal: giveUp.signal }).catch(() => {});
  const isLate = (await Promise.race([stampede.close(), late])) === 'late';
  giveUp.abort();
  if (isLate) accident(`not closed within ${CLOSE_PATIENCE} ms`);
}

let before;
serve({
  async start() {
    await stampede.start();
    await cache.getOrLoad(`warm-${name}`, async () => ({ id: 'warm' }), 1_000);
    before = await usage();
    begin();
    return store.process;
  },
  /** After the first seconds the code is compiled and buffers are there. */
  async warm() {
    before = { ...before, heap: (await usage()).heap };
  },
  async probe(key) {
    const from = now();
    const calls = [];
    let loads = 0;
    const load = async () => ({ id: `probe-${++loads}` });
    const giveUp = new AbortController();
    const patience = sleep(PROBE_PATIENCE, undefined, { signal: giveUp.signal }).catch(() => {});
    for (let i = 0; i < 2; i++) {
      calls.push(await Promise.race([cache.getOrLoad(key, load, 5_000).catch(() => {}), patience]));
    }
    giveUp.abort();
    return { from, until: now(), hit: loads === 1 && calls.every((value) => value?.id === 'probe-1') };
  },
  /** Ends the work and answers when every call is answered, or which are not. */
  async finish(patience) {
    over = true;
    const giveUp = new AbortController();
    const late = sleep(patience, 'late', { signal: giveUp.signal }).catch(() => {});
    const isLate = (await Promise.race([Promise.all(running), late])) === 'late';
    giveUp.abort();
    if (isLate)
      for (const line of open.values()) note(line.lock ? 'refused' : 'call', { ...line, key: line.key ?? line.lock });
    return { at: now(), unanswered: isLate ? open.size : 0 };
  },
  /** What there is after all calls, and after closing. */
  async measure() {
    const after = await usage();
    const signalListeners = getEventListeners(shared, 'abort').length;
    await closeInTime();
    canary.disconnect();
    clearInterval(canaryWatch);
    return { before, after, closed: await usage(), signalListeners };
  },
  async close() {
    await closeInTime();
  },
  async end() {
    clearInterval(watch);
    clearInterval(canaryWatch);
    canary.disconnect();
    socket.end();
    await new Promise((resolve) => socket.once('close', resolve));
  },
});

// In place of those of `serve`, which end the director's calls: the run goes on, and all of them are told.
const told = { unhandledRejection: 'unhandled rejection', uncaughtException: 'uncaught exception' };
for (const [event, what] of Object.entries(told)) {
  process.removeAllListeners(event);
  process.on(event, (error) => accident(`${what}: ${error?.stack ?? error}`));
}
