/** One node of a Cluster is away: who asks for what is on the others doesn't notice. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Cluster, type Redis } from 'ioredis';
import { createStampede, type Stampede } from '../../lib/core/create.js';
import { read } from '../../lib/redis/read.js';
import { eventually } from '../support/eventually.js';
import { type RedisCluster, startCluster } from '../support/redis-cluster.js';
import type { RedisServer } from '../support/redis-server.js';
import { newStore } from './redis-stores.js';

/** Long, so that a busy machine can't be mistaken for a node that is away. */
const COMMAND_TIMEOUT = 2_000;

let cluster: RedisCluster;
let stampede: Stampede;
let loads: string[] = [];
let hits = 0;

beforeAll(async () => {
  cluster = await startCluster({ primaries: 3 });
  // Otherwise all nodes refuse everything as soon as they find one missing.
  await Promise.all(cluster.nodes.map((node) => node.client().config('SET', 'cluster-require-full-coverage', 'no')));
  const connection = new Cluster([...cluster.startupNodes], { lazyConnect: true });
  stampede = createStampede(
    { store: newStore({ connection, commandTimeout: COMMAND_TIMEOUT }) },
    { commandTimeout: COMMAND_TIMEOUT },
  );
  await stampede.start();
  stampede.cache.events.subscribe(({ type }) => {
    if (type === 'hit') hits += 1;
  });
});
afterAll(async () => {
  await stampede.close();
  await cluster.stop();
});

const keys = Array.from({ length: 60 }, (_, i) => `key${i}`);
const ask = (key: string) =>
  stampede.cache.getOrLoad(
    key,
    () => {
      loads.push(key);
      return key;
    },
    '60s',
  );

async function timed(all: readonly string[]): Promise<number> {
  const asked = performance.now();
  expect(await Promise.all(all.map(ask))).toEqual(all);
  return performance.now() - asked;
}

test.each([
  ['frozen', (node: RedisServer) => node.freeze(), async (node: RedisServer) => node.thaw(), COMMAND_TIMEOUT],
  ['killed', (node: RedisServer) => node.kill(), (node: RedisServer) => node.restart(), COMMAND_TIMEOUT],
])('a node that is %s', async (_how, takeAway, bringBack, within) => {
  await Promise.all(keys.map((key) => eventually(() => stampede.cache.set(key, key, '60s').then(() => true))));
  const node = cluster.primaries[1] as RedisServer;
  const [theirs, others]: [string[], string[]] = [[], []];
  for (const key of keys) ((await cluster.primaryOf(`test:{${key}}`)) === node ? theirs : others).push(key);
  expect(theirs.length).toBeGreaterThan(5);
  const allAreHits = async () => {
    loads = [];
    hits = 0;
    await timed(keys);
    return hits === keys.length;
  };
  // The nodes talk about who is there for a while after the last test.
  await eventually(allAreHits, { within: 20_000 });

  await takeAway(node);
  // All in one tick, and again, until the node is known to be away.
  for (let i = 0; i < 4; i += 1) {
    const all = timed(theirs);
    expect(await timed(others)).toBeLessThan(within / 2);
    await all;
    expect(loads.filter((key) => others.includes(key))).toEqual([]);
  }
  expect(new Set(loads)).toEqual(new Set(theirs));
  // By now, nobody waits for it.
  expect(await timed(theirs)).toBeLessThan(within);

  await bringBack(node);
  await eventually(allAreHits, { within: 20_000 });
});

test('while one node is lost and one is only connecting, nobody gets what belongs to another key', async () => {
  const client = new Cluster([...cluster.startupNodes], {
    enableOfflineQueue: false,
    retryDelayOnFailover: 0,
    // Of a node whose socket is closed already ioredis waits out this timeout.
    redisOptions: { disconnectTimeout: 100 },
  });
  await new Promise((resolve) => client.once('ready', resolve));
  const [lost, living, connecting] = cluster.primaries as [RedisServer, RedisServer, RedisServer];
  const clientOf = ({ port }: RedisServer) => client.nodes().find(({ options }) => options.port === port) as Redis;
  const owners = await Promise.all(keys.map((key) => cluster.primaryOf(key)));
  const ofLost = keys.filter((_, i) => owners[i] === lost);
  const ofLiving = keys.filter((_, i) => owners[i] === living);
  await Promise.all(keys.map((key) => cluster.client().set(key, key)));
  await Promise.all([clientOf(lost), clientOf(living)].map((node) => node.ping()));
  // The client may write its status (its socket can close on a busy machine); what is read stays the same.
  Object.defineProperty(clientOf(connecting), 'status', { get: () => 'connecting', set: () => undefined });

  const wrong: unknown[] = [];
  for (let i = 0; i < 30; i += 1) {
    const node = clientOf(lost);
    if (node) {
      const ended = new Promise((resolve) => node.once('end', resolve));
      node.disconnect();
      await ended;
    }
    const readThem = async (some: readonly string[]) => {
      const over = new AbortController();
      const unanswered = sleep(1_000, undefined, { signal: over.signal }).catch(() => undefined);
      const reply = await Promise.race([read(client, some, false).catch(() => undefined), unanswered]);
      over.abort();
      wrong.push(...(reply?.texts ?? []).filter((text, j) => text !== some[j]));
      return reply;
    };
    await readThem(ofLost);
    // The living one answers, and with its own; on a busy machine not at the first try.
    let answered: unknown;
    for (let tries = 0; !answered && tries < 3; tries += 1) answered = await readThem(ofLiving);
    if (!answered) wrong.push('no answer');
    if (wrong.length > 0) break;
  }
  client.disconnect();
  expect(wrong).toEqual([]);
});
