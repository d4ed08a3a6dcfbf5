import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import { createStampede, RedisStore, type Stampede } from 'nestjs-stampede-cache';
import { eventually } from '../support/eventually.js';
import { type RedisCluster, startCluster } from '../support/redis-cluster.js';
import { type Crowd, print, startCrowd, tail } from './crowd.js';

jest.setTimeout(60_000);

let cluster: RedisCluster;
let crowd: Crowd | undefined;
let stampede: Stampede | undefined;

beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.stop());
afterEach(async () => {
  await crowd?.stop();
  await stampede?.close();
  crowd = undefined;
  stampede = undefined;
});

test('S2: 3 processes with 100 callers each on a dozen cold keys make one load of each', async () => {
  const processes = 3;
  crowd = await startCrowd({ nodes: cluster.startupNodes }, processes);
  const keys = Array.from({ length: 12 }, (_, index) => `product:${index}`);
  // On all three nodes, or it would prove nothing.
  const primaries = await Promise.all(keys.map((key) => cluster.primaryOf(crowd!.valueName(key))));
  expect(new Set(primaries).size).toBe(3);

  await Promise.all(cluster.nodes.map((node) => eventually(() => node.client().ping())));
  await cluster.resetStats();
  const question = { callers: 100, load: { takes: 200 } };
  const asked = await Promise.all(
    keys.map((key) => crowd!.ask(key, { ...question, load: { ...question.load, gives: key } })),
  );
  const commands = await cluster.commandCount();
  const tails = keys.map((key, index) => tail(crowd!.loads(key), asked[index]!).toFixed(1));
  print(`${commands} commands for ${keys.length} keys; last answers ${tails.join(' ')} ms after their load's end`);
  for (const [index, key] of keys.entries()) {
    expect(crowd.loads(key)).toHaveLength(1);
    expect(asked[index]).toHaveLength(300);
    for (const { value } of asked[index]!) expect(value).toBe(key);
  }
  expect(commands).toBeLessThanOrEqual(50 * keys.length);
});

test('S7: an eviction in one process is seen in the others', async () => {
  crowd = await startCrowd({ nodes: cluster.startupNodes }, 3);
  const [loading, evicting, third] = crowd.processes;
  const early = loading!.call('ask', 'evicted', { load: { takes: 300, gives: 'old' } });
  await eventually(() => crowd!.loads('evicted')[0], { every: 5 });
  await evicting!.call('evict', 'evicted');
  const later = await Promise.all(
    crowd.processes.map((each) => each.call('ask', 'evicted', { callers: 5, load: { takes: 20, gives: 'new' } })),
  );
  for (const { value } of later.flat()) expect(value).toBe('new');
  // It asked before the eviction: both are right. Who comes to listen in the middle of it all finds out that another leads now.
  const [answer] = await early;
  expect(['old', 'new']).toContain(answer!.value);
  expect(await third!.call('get', 'evicted')).toBe('new');
});

/** K2: keys that might move the hash tag, or break a name. */
const KEYS = [
  'x',
  '{}',
  '{a}b',
  'a{b',
  '}{',
  '{}x',
  '{"id":[1,{"a":"b"}]}',
  '🦊',
  'k'.repeat(10_000),
  'two\nlines',
  '%7B',
];

test('K2: every key loads once, is found again and is evicted; its value, lock and outcome share a slot', async () => {
  const logger = { log() {}, warn() {}, error() {} };
  const connection = cluster.client();
  const store = new RedisStore({ connection, namespace: 'k2', commandTimeout: 500, logger });
  stampede = createStampede({ store });
  await stampede.start();
  const { cache } = stampede;
  const loads = new Map<string, number>();
  const ask = (key: string) =>
    cache.getOrLoad(
      key,
      () => {
        loads.set(key, (loads.get(key) ?? 0) + 1);
        return `value of ${key}`;
      },
      '60s',
    );

  for (let round = 0; round < 2; round++) {
    const values = await Promise.all(KEYS.map(ask));
    expect(values).toEqual(KEYS.map((key) => `value of ${key}`));
    expect(KEYS.map((key) => loads.get(key))).toEqual(KEYS.map(() => 1));
  }
  // All keys at once: one node's pipeline at a time.
  expect(await Promise.all(KEYS.map((key) => cache.has(key)))).toEqual(KEYS.map(() => true));
  await cache.evict(KEYS);
  expect(await Promise.all(KEYS.map((key) => cache.has(key)))).toEqual(KEYS.map(() => false));
  await Promise.all(KEYS.map(ask));
  expect(KEYS.map((key) => loads.get(key))).toEqual(KEYS.map(() => 2));
});
