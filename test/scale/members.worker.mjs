// A Node process with several stores and caches in it, each with connections of its own: so many simulated processes.
import { Cluster } from 'ioredis';
import { createStampede, RedisStore } from 'nestjs-stampede-cache';
import { serve } from '../support/worker.mjs';

const { url, nodes, count } = JSON.parse(process.env.MEMBERS);
const logger = { log() {}, warn() {}, error() {} };
// What is counted here must not depend on how busy the machine is.
const options = { commandTimeout: 60_000, defaults: { lease: '10m', wait: '10m', maxLoad: '10m' } };

const now = () => Number(process.hrtime.bigint()) / 1e6;
let members = [];
let pattern;
let loads = 0;
let finish;
let finished;

function reset() {
  loads = 0;
  finished = new Promise((resolve) => {
    finish = resolve;
  });
}
reset();

function heap() {
  global.gc();
  return process.memoryUsage().heapUsed;
}

serve({
  /** @returns bytes of heap that each takes */
  async start() {
    pattern = nodes && new Cluster(nodes, { lazyConnect: true });
    const before = heap();
    members = Array.from({ length: count }, () => {
      const store = new RedisStore({ connection: pattern ?? url, namespace: 'scale', commandTimeout: 60_000, logger });
      return createStampede({ store, logger }, options);
    });
    await Promise.all(members.map((member) => member.start()));
    return (heap() - before) / count;
  },
  reset,
  /** So many callers of a key in each simulated process; whoever loads goes on until `finish`. */
  async ask(key, callers) {
    const load = async () => {
      loads += 1;
      await finished;
      return key;
    };
    const answers = await Promise.all(
      members.flatMap(({ cache }) => Array.from({ length: callers }, () => cache.getOrLoad(key, load, '10m'))),
    );
    return { right: answers.every((answer) => answer === key), at: now() };
  },
  /** The same for those who would rather have an old value. */
  async askStale(key, callers) {
    const load = async () => {
      loads += 1;
      await finished;
      return key;
    };
    const windows = { ttl: '10m', staleWhileRevalidate: '10m' };
    await Promise.all(
      members.flatMap(({ cache }) => Array.from({ length: callers }, () => cache.getOrLoad(key, load, windows))),
    );
  },
  expire: (key) => members[0].cache.expire(key),
  /** Waits for loads in the background. */
  async settled() {
    await Promise.all(members.map(({ cache }) => cache.settle(60_000)));
  },
  finish() {
    finish();
    return now();
  },
  loads: () => loads,
  heap,
  /** Each simulated process loads keys of its own, one after the other. */
  async miss(name, keys) {
    await Promise.all(
      members.map(async ({ cache }, member) => {
        for (let i = 0; i < keys; i += 1)
          await cache.getOrLoad(`${name}:${process.pid}:${member}:${i}`, () => i, '10m');
      }),
    );
  },
  evict: (key) => members[0].cache.evict(key),
  async close() {
    await Promise.all(members.map((member) => member.close()));
  },
});
