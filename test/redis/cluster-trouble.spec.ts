/**
 * A Cluster changes under a crowd: three processes keep asking for a dozen keys while slots move, a primary dies, or the nodes
 * send everybody round in circles. All calls are answered, loads are bounded, and afterwards a hit is one read again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { type Crowd, startCrowd } from '../stampede/crowd.js';
import { eventually } from '../support/eventually.js';
import { type RedisCluster, startCluster } from '../support/redis-cluster.js';
import type { RedisServer } from '../support/redis-server.js';
import { expectRecovery, insistDuring, LEASE } from './insist.js';

jest.setTimeout(150_000);

const PROCESSES = 3;
/** A failed election is tried again only after four times the node timeout of two seconds. */
const FAILOVER = { within: 60_000, every: 50 };

const KEYS = Array.from({ length: 12 }, (_, i) => `key${i}`);

let cluster: RedisCluster;
let crowd: Crowd;

async function start(replicas: 0 | 1): Promise<void> {
  cluster = await startCluster({ primaries: 3, replicas });
  crowd = await startCrowd({ nodes: cluster.startupNodes }, PROCESSES);
}
async function stop(): Promise<void> {
  await crowd?.stop();
  await cluster.stop();
}

const slotOf = async (key: string) =>
  Number(await cluster.nodes[0]!.client().call('CLUSTER', 'KEYSLOT', crowd.valueName(key)));
const idOf = async (node: RedisServer) => String(await node.client().call('CLUSTER', 'MYID'));
const setSlot = (node: RedisServer, slot: number, ...state: string[]) =>
  node.client().call('CLUSTER', 'SETSLOT', slot, ...state);

describe('three primaries', () => {
  beforeEach(() => start(0));
  afterEach(stop);

  test('slots move to and fro, and stand half moved for a while (ASK, TRYAGAIN, MOVED)', async () => {
    const owners = new Map<string, RedisServer>();
    for (const key of KEYS) owners.set(key, await cluster.primaryOf(crowd.valueName(key)));
    await insistDuring(crowd, KEYS, async () => {
      for (let round = 0; round < 2; round += 1) {
        for (const key of KEYS.slice(0, 6)) owners.set(key, await moveSlot(key, owners.get(key) as RedisServer));
      }
    });
    await expectRecovery(crowd, KEYS, cluster.nodes);
  });

  test('two nodes that each say the other has it (a storm of MOVED)', async () => {
    const key = KEYS[0] as string;
    const [slot, one] = [await slotOf(key), await cluster.primaryOf(crowd.valueName(key))];
    const [two, three] = cluster.primaries.filter((each) => each !== one) as [RedisServer, RedisServer];
    const [oneId, twoId] = [await idOf(one), await idOf(two)];
    await insistDuring(crowd, KEYS, async () => {
      // A node gives no slot away that has keys, and our crowd makes some.
      await eventually(async () => {
        await emptySlot(one, slot);
        return (await setSlot(one, slot, 'NODE', twoId)) === 'OK';
      });
      await setSlot(two, slot, 'NODE', oneId);
      await sleep(1_500);
      for (const node of [two, one, three]) await setSlot(node, slot, 'NODE', twoId);
    });
    await expectRecovery(crowd, KEYS, cluster.nodes);
  });

  test('a primary without a replica dies, the others refuse everything (CLUSTERDOWN), and it comes back', async () => {
    const lost = cluster.primaries[1] as RedisServer;
    await insistDuring(crowd, KEYS, async () => {
      await lost.kill();
      await eventually(() => saysState(cluster.primaries[0] as RedisServer, 'fail'), FAILOVER);
      await sleep(1_000);
      await lost.restart();
      await Promise.all(cluster.primaries.map((node) => eventually(() => saysState(node, 'ok'), FAILOVER)));
    });
    await expectRecovery(crowd, KEYS, cluster.nodes);
  });
});

test('a primary is killed, and its replica takes over', async () => {
  await start(1);
  try {
    const [lost, successor] = [cluster.primaries[0], cluster.replicas[0]] as [RedisServer, RedisServer];
    const takeOver = async () => {
      await lost.kill();
      await eventually(async () => (await successor.client().info('replication')).includes('role:master'), FAILOVER);
      const others = cluster.nodes.filter((node) => node !== lost);
      await Promise.all(others.map((node) => eventually(() => saysState(node, 'ok'), FAILOVER)));
    };
    await insistDuring(crowd, KEYS, takeOver, { revived: LEASE });
    await expectRecovery(crowd, KEYS, cluster.nodes);
    // Eviction wins again.
    await crowd.processes[0]!.call('evict', 'key0');
    const [answer] = await crowd.ask('key0', { load: { gives: 'new' } });
    expect(answer).toMatchObject({ value: 'new' });
  } finally {
    await stop();
  }
});

async function saysState(node: RedisServer, state: string): Promise<boolean> {
  return String(await node.client().call('CLUSTER', 'INFO')).includes(`cluster_state:${state}`);
}

async function emptySlot(node: RedisServer, slot: number): Promise<void> {
  const names = (await node.client().call('CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[];
  if (names.length > 0) await node.client().del(...names);
}

/** As `redis-cli --cluster reshard` does, but slowly. */
async function moveSlot(key: string, source: RedisServer): Promise<RedisServer> {
  const target = cluster.primaries.find((primary) => primary !== source) as RedisServer;
  const slot = await slotOf(key);
  const [from, to] = [await idOf(source), await idOf(target)];
  await setSlot(target, slot, 'IMPORTING', from);
  await setSlot(source, slot, 'MIGRATING', to);
  await sleep(100);
  await eventually(async () => {
    const names = (await source.client().call('CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[];
    if (names.length === 0) return true;
    await source.client().migrate(target.host, target.port, '', 0, 1_000, 'REPLACE', 'KEYS', ...names);
    return false;
  });
  await sleep(100);
  for (const node of [target, source, ...cluster.primaries]) await setSlot(node, slot, 'NODE', to);
  return target;
}
