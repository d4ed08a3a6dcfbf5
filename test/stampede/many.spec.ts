import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import { createStampede, RedisStore, type Stampede } from 'nestjs-stampede-cache';
import { eventually } from '../support/eventually.js';
import { type FaultProxy, startProxy } from '../support/fault-proxy.js';
import { type RedisCluster, startCluster } from '../support/redis-cluster.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { type Crowd, now, print, startCrowd } from './crowd.js';

jest.setTimeout(90_000);

const logger = { log() {}, warn() {}, error() {} };
/** Of a busy machine, a thousand scripts may take their time. */
const options = { commandTimeout: 20_000, defaults: { lease: '60s', wait: '60s', maxLoad: '60s' } } as const;

let redis: RedisServer;
let cluster: RedisCluster;
let crowd: Crowd | undefined;
let proxy: FaultProxy | undefined;
let stampede: Stampede | undefined;

beforeAll(async () => {
  [redis, cluster] = await Promise.all([startRedis(), startCluster()]);
});
afterAll(() => Promise.all([redis.stop(), cluster.stop()]));
afterEach(async () => {
  await stampede?.close();
  await proxy?.stop();
  await crowd?.stop();
  stampede = undefined;
  proxy = undefined;
  crowd = undefined;
  await redis.client().flushall();
});

const keysFrom = (from: number, count: number) => Array.from({ length: count }, (_, i) => `key:${from + i}`);
const valuesOf = (keys: readonly string[]) => keys.map((key) => `value of ${key}`);

async function connect(connection: ConstructorParameters<typeof RedisStore>[0]['connection']): Promise<Stampede> {
  const store = new RedisStore({ connection, namespace: 'many', commandTimeout: 20_000, logger });
  stampede = createStampede({ store, logger }, options);
  await stampede.start();
  // Whoever comes first to a server has to teach it the scripts.
  await stampede.cache.getOrLoad('warm-up', () => 1, '60s');
  return stampede;
}

test('1,000 cold keys are a read, a lead and an end: as many round trips and a few dozen packets; then a hit is one', async () => {
  proxy = await startProxy(redis.port);
  const { cache } = await connect(`redis://127.0.0.1:${proxy.port}`);
  let packets = 0;
  proxy.onRequest(() => {
    packets += 1;
    return 'pass';
  });
  const keys = keysFrom(0, 1_000);
  const roundTrip = 200;
  proxy.delay({ min: roundTrip / 2, max: roundTrip / 2 });
  await redis.resetStats();
  const calledAt = now();
  expect(await cache.getOrLoadMany(keys, valuesOf, '60s')).toEqual(valuesOf(keys));
  const took = now() - calledAt;
  const cold = packets;
  const { mget = 0, eval: taught = 0, evalsha = 0, ...others } = await redis.commandStats();
  expect(others).toEqual({ get: 1_000, set: 2_000, del: 1_000 });
  // Sixteen keys a script, if nothing else comes between.
  expect(taught + evalsha).toBeGreaterThanOrEqual(2 * 63);
  expect(taught + evalsha).toBeLessThan(2 * 100);
  // Inside of each `lead` there is one; a long list may be read by a few.
  expect(mget - 1_000).toBeGreaterThanOrEqual(1);
  expect(mget - 1_000).toBeLessThanOrEqual(4);
  expect(took).toBeGreaterThan(3 * roundTrip);
  // One after the other they would take ten minutes.
  expect(took).toBeLessThan(10 * 1_000);
  expect(cold).toBeLessThan(200);

  packets = 0;
  await redis.resetStats();
  expect(await cache.getOrLoadMany(keys, () => [], '60s')).toEqual(valuesOf(keys));
  const hits = await redis.commandStats();
  expect(Object.keys(hits)).toEqual(['mget']);
  expect(hits['mget']).toBeLessThanOrEqual(4);
  expect(packets).toBeLessThan(20);
  print(`1,000 cold keys: ${took.toFixed(0)} ms with ${roundTrip} ms a round trip, ${cold} packets; hits: ${packets}`);
});

test('renewals leave together as well', async () => {
  proxy = await startProxy(redis.port);
  const { cache } = await connect(`redis://127.0.0.1:${proxy.port}`);
  const keys = keysFrom(0, 500);
  let packets = 0;
  const load = async () => {
    await redis.resetStats();
    proxy!.onRequest(() => {
      packets += 1;
      return 'pass';
    });
    await eventually(async () => ((await redis.commandStats())['pexpire'] ?? 0) >= 500, { within: 60_000 });
    proxy!.onRequest(undefined);
    return valuesOf(keys);
  };
  expect(await cache.getOrLoadMany(keys, load, { ttl: '60s', lease: '6s' })).toEqual(valuesOf(keys));
  print(`500 renewals in ${packets} packets`);
  expect(packets).toBeLessThan(150);
});

test('4 processes with lists that overlap, in orders of their own: one load a key, and nobody waits for ever', async () => {
  crowd = await startCrowd({ connection: redis.url, options }, 4);
  await crowd.untilListening(redis);
  const lists = [keysFrom(0, 200), keysFrom(100, 200).reverse(), keysFrom(50, 200), keysFrom(0, 300).reverse()];
  const at = now() + 100;
  const asked = await Promise.all(
    crowd.processes.map((each, i) => each.call('askMany', lists[i]!, { at, takes: 300 })),
  );
  for (const [i, values] of asked.entries()) expect(values).toEqual(valuesOf(lists[i]!));
  for (const key of keysFrom(0, 300)) expect(crowd.loads(key)).toHaveLength(1);
  const together = await Promise.all(crowd.processes.map((each) => each.call('loadedTogether')));
  print(`loadMany of each process, by keys: ${together.map((sizes) => `[${sizes}]`).join(' ')}`);
  // Each leads its keys by one call.
  for (const sizes of together) expect(sizes.length).toBeLessThanOrEqual(1);
  expect(await redis.client().keys('*:lock')).toEqual([]);
});

test('S4: the leader of many is killed: the other loads all of them, when their leases end', async () => {
  crowd = await startCrowd({ connection: redis.url, options }, 2);
  await crowd.untilListening(redis);
  const keys = keysFrom(0, 100);
  const [dies, lives] = crowd.processes;
  const killed = dies!.call('askMany', keys, { takes: 60_000, lease: '4s' }).catch(() => 'killed');
  await crowd.leader('key:99');
  const asked = lives!.call('askMany', [...keys, 'own'], { takes: 100, lease: '4s' });
  await eventually(() => crowd!.loads('own')[0], { within: 20_000 });
  await dies!.kill();
  expect(await killed).toBe('killed');
  expect(await asked).toEqual(valuesOf([...keys, 'own']));
  for (const key of keys) expect(crowd.loads(key)).toHaveLength(2);
  const sizes = await lives!.call('loadedTogether');
  print(`after the leader of 100 was killed: loadMany by keys [${sizes}]`);
  expect(sizes.reduce((sum, size) => sum + size)).toBe(101);
  expect(sizes.length).toBeLessThanOrEqual(30);
});

test('on a Cluster: one load a key, a pipeline a node', async () => {
  await Promise.all(cluster.nodes.map((node) => eventually(() => node.client().ping())));
  crowd = await startCrowd({ nodes: cluster.startupNodes, namespace: 'cluster', options }, 3);
  const keys = keysFrom(0, 300);
  const primaries = await Promise.all(keys.slice(0, 20).map((key) => cluster.primaryOf(`cluster:{${key}}`)));
  expect(new Set(primaries).size).toBe(3);
  const lists = [keys, [...keys].reverse(), keys.slice(100)];
  const at = now() + 100;
  const asked = await Promise.all(
    crowd.processes.map((each, i) => each.call('askMany', lists[i]!, { at, takes: 300 })),
  );
  for (const [i, values] of asked.entries()) expect(values).toEqual(valuesOf(lists[i]!));
  for (const key of keys) expect(crowd.loads(key)).toHaveLength(1);
  for (const process of crowd.processes) {
    expect((await process.call('loadedTogether')).length).toBeLessThanOrEqual(1);
  }

  await cluster.resetStats();
  expect(await crowd.processes[2]!.call('askMany', keys, {})).toEqual(valuesOf(keys));
  expect(await cluster.commandStats()).toEqual({ get: 300 });
  await crowd.processes[0]!.call('evict', 'key:7');
  expect(await crowd.processes[1]!.call('askMany', keys, {})).toEqual(valuesOf(keys));
  expect(crowd.loads('key:7')).toHaveLength(2);
  expect(crowd.loads('key:8')).toHaveLength(1);
});
