/**
 * Holds the formulas of docs/scaling.md: simulated processes, each with a store, a cache and connections of its own, several
 * in a Node process, against one Redis and a Cluster of six nodes. Counts, not times; `npm run scale` does the same with 200
 * and prints what it took.
 */
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import type { CommandStats } from '../support/command-stats.js';
import { totalCommands } from '../support/command-stats.js';
import { eventually } from '../support/eventually.js';
import { startProcesses, type WorkerProcess } from '../support/processes.js';
import { type RedisCluster, startCluster } from '../support/redis-cluster.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';

jest.setTimeout(300_000);

interface Members {
  start(): Promise<number>;
  reset(): void;
  ask(key: string, callers: number): Promise<{ right: boolean; at: number }>;
  finish(): number;
  askStale(key: string, callers: number): Promise<void>;
  expire(key: string): Promise<void>;
  settled(): Promise<void>;
  loads(): number;
  heap(): number;
  miss(name: string, keys: number): Promise<void>;
  evict(key: string): Promise<void>;
  close(): Promise<void>;
}

const PROCESSES = Number(process.env['SCALE'] ?? 12);
const NODE_PROCESSES = PROCESSES > 50 ? 4 : 2;
const FOLLOWERS = PROCESSES - 1;
const CALLERS = 5;

class Crowd {
  private constructor(
    readonly workers: readonly WorkerProcess<Members>[],
    /** Bytes of heap that one simulated process takes. */
    readonly heapEach: number,
  ) {}

  static async start(where: { url?: string; nodes?: unknown }): Promise<Crowd> {
    const env = {
      MEMBERS: JSON.stringify({ ...where, count: PROCESSES / NODE_PROCESSES }),
      NODE_OPTIONS: '--expose-gc',
    };
    const script = new URL('./members.worker.mjs', import.meta.url);
    const workers = await startProcesses<Members>(script, NODE_PROCESSES, { env });
    const heaps = await Promise.all(workers.map((worker) => worker.call('start')));
    return new Crowd(workers, heaps.reduce((sum, heap) => sum + heap) / heaps.length);
  }

  async each<Name extends keyof Members>(name: Name, ...args: Parameters<Members[Name]>) {
    const call = (worker: WorkerProcess<Members>) => worker.call(name, ...(args as never));
    return (await Promise.all(this.workers.map(call))) as Awaited<ReturnType<Members[Name]>>[];
  }

  /** Bytes of heap of all Node processes. */
  async heap(): Promise<number> {
    return sum(await this.each('heap'));
  }

  /**
   * All ask for a key. When everybody waits, which `isWaiting` says, `meanwhile` runs, and then the load ends.
   *
   * @returns milliseconds from the load's end to the last answer
   */
  async contend(
    key: string,
    isWaiting: () => Promise<boolean>,
    meanwhile = async () => {},
    callers = CALLERS,
  ): Promise<number> {
    await this.each('reset');
    const asked = this.each('ask', key, callers);
    await eventually(isWaiting, { within: 120_000, every: 100 });
    await meanwhile();
    const ended = await this.each('finish');
    const answers = await asked;
    for (const { right } of answers) expect(right).toBe(true);
    return Math.max(...answers.map(({ at }) => at)) - Math.max(...ended);
  }

  async stop(): Promise<void> {
    await this.each('close');
    await Promise.all(this.workers.map((worker) => worker.stop()));
  }
}

function print(line: string): void {
  process.stdout.write(`      ${line}\n`);
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);

/** Number `name` of a section of INFO, or of CLUSTER INFO. */
function numberIn(info: string, name: string): number {
  return Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1] ?? 0);
}

/** By how long a lock's text is: the token, and a comma and 16 letters for each follower. */
function followersIn(lock: string): number {
  return lock.split(',').length - 1;
}

describe('on one Redis', () => {
  let redis: RedisServer;
  let crowd: Crowd;
  let connectionsBefore: number;

  const connections = async () => numberIn(await redis.client().info('clients'), 'connected_clients');
  const lockOf = async (key: string) => (await redis.client().get(`scale:{${key}}:lock`)) ?? '';
  const allWait = (key: string) => async () => followersIn(await lockOf(key)) === FOLLOWERS;

  /** What the crowd's commands were; what the test has sent to look is not theirs. */
  async function counted(key: string, run: () => Promise<unknown>): Promise<CommandStats> {
    let looked = 0;
    const get = redis.client().get.bind(redis.client());
    redis.client().get = ((name: string) => {
      looked += 1;
      return get(name);
    }) as typeof get;
    await redis.resetStats();
    await run();
    redis.client().get = get;
    const stats = await redis.commandStats();
    expect(await redis.client().exists(`scale:{${key}}:lock`)).toBe(0);
    return { ...stats, get: (stats['get'] ?? 0) - looked };
  }

  beforeAll(async () => {
    redis = await startRedis();
    await redis.client().ping();
    connectionsBefore = await connections();
    crowd = await Crowd.start({ url: redis.url });
    // Whoever comes first has to teach the server the scripts.
    await crowd.each('miss', 'warm-up', 1);
  });
  afterAll(async () => {
    await crowd?.stop();
    await redis?.stop();
  });

  test('connections: 2 P', async () => {
    expect((await connections()) - connectionsBefore).toBe(2 * PROCESSES);
    print(`${PROCESSES} processes: ${2 * PROCESSES} connections, ${Math.round(crowd.heapEach / 1024)} kB of heap each`);
  });

  test('a contended load: 7 P + 1 commands and F messages, and a look now and then while it lasts', async () => {
    let lock = '';
    let memory = 0;
    const cpuBefore = await redis.client().info('cpu');
    let took = 0;
    const stats = await counted('contended', async () => {
      took = await crowd.contend('contended', allWait('contended'), async () => {
        lock = await lockOf('contended');
        memory = Number(await redis.client().memory('USAGE', 'scale:{contended}:lock'));
      });
    });
    const cpu = cpuOf(await redis.client().info('cpu')) - cpuOf(cpuBefore);
    expect(sum(await crowd.each('loads'))).toBe(1);

    const { get = 0, evalsha = 0, mget = 0, pttl = 0, ...others } = stats;
    expect(others).toEqual({ set: 2, append: FOLLOWERS, publish: FOLLOWERS, del: 1 });
    // Who happens to look at the lock just when it ends has the value by another `lead`; all others read again.
    const lateHits = FOLLOWERS - (get - PROCESSES - 1);
    expect(lateHits).toBeGreaterThanOrEqual(0);
    // Who waits long leads again.
    const again = evalsha - (PROCESSES + 1) - lateHits;
    const looks = pttl - FOLLOWERS - again;
    expect(mget).toBe(PROCESSES + lateHits + again);
    expect(looks).toBeGreaterThanOrEqual(0);
    const commands = totalCommands(stats) - lateHits - looks - 3 * again;
    expect(commands).toBe(7 * PROCESSES + 1);
    expect(lock.length).toBe(lock.indexOf(',') + 17 * FOLLOWERS);
    print(
      `a contended load, ${PROCESSES * CALLERS} callers: ${commands} commands, ${FOLLOWERS} messages, ${looks} looks, ` +
        `${lateHits + again} further leads; last answer ${took.toFixed(0)} ms after the load's end; Redis ${(cpu * 1000).toFixed(0)} ms of CPU; ` +
        `the lock ${lock.length} bytes (${memory} in Redis)`,
    );
  });

  test('an eviction during it: P messages and one for near caches, and then each who waits goes round', async () => {
    let evicted: CommandStats = {};
    await crowd.contend('evicted', allWait('evicted'), async () => {
      // Whoever leads next does so at once; its followers register with it.
      await redis.resetStats();
      await crowd.workers[0]!.call('evict', 'evicted');
      evicted = await redis.commandStats();
    });
    // To the holder, to each follower, and to near caches.
    expect(evicted['publish']).toBe(PROCESSES + 1);
  });

  test('old values while one process loads: no more than 2 P + 4 F + 9 commands, and no message', async () => {
    await crowd.each('finish');
    await crowd.each('askStale', 'stale', CALLERS);
    await crowd.workers[0]!.call('expire', 'stale');
    await crowd.each('reset');
    await redis.resetStats();
    await crowd.each('askStale', 'stale', CALLERS);
    await crowd.each('finish');
    await crowd.each('settled');
    const stats = await redis.commandStats();
    expect(sum(await crowd.each('loads'))).toBe(1);
    expect(stats['publish']).toBeUndefined();
    const commands = totalCommands(stats);
    expect(commands).toBeLessThanOrEqual(2 * PROCESSES + 4 * FOLLOWERS + 9);
    print(`a refresh in the background: ${commands} commands`);
  });

  test('hits: one command a process, whatever its number of callers', async () => {
    await redis.resetStats();
    await crowd.each('ask', 'contended', 20 * CALLERS);
    expect(await redis.commandStats()).toEqual({ get: PROCESSES });
  });

  test('memory: what waits takes heap, and gives it back', async () => {
    const heapWith = async (callers: number) => {
      const before = await crowd.heap();
      let during = 0;
      const key = `memory ${callers}`;
      const measure = async () => {
        during = await crowd.heap();
      };
      await crowd.contend(key, allWait(key), measure, callers);
      return { waiting: (during - before) / PROCESSES, left: ((await crowd.heap()) - before) / PROCESSES };
    };
    await heapWith(200);
    const one = await heapWith(1);
    const many = await heapWith(201);
    const caller = (many.waiting - one.waiting) / 200;
    print(
      `a flight with its first caller takes ${one.waiting.toFixed(0)} bytes of heap, each further caller ${caller.toFixed(0)}; ` +
        `${many.left.toFixed(0)} bytes a process stay`,
    );
    expect(caller).toBeLessThan(8_000);
    expect(many.left).toBeLessThan(100_000);
  });

  test('lone misses: 8 commands each, no message, and nothing stays in the processes', async () => {
    const misses = 10 * PROCESSES;
    await crowd.each('miss', 'first', 10);
    const before = await crowd.heap();
    await redis.resetStats();
    await crowd.each('miss', 'more', 10);
    const stats = await redis.commandStats();
    const stays = ((await crowd.heap()) - before) / misses;
    expect(stats).toEqual({ get: 2 * misses, evalsha: 2 * misses, mget: misses, set: 2 * misses, del: misses });
    expect(totalCommands(stats)).toBe(8 * misses);
    const bytes = Number(await redis.client().memory('USAGE', `scale:{more:${crowd.workers[0]!.pid}:0:0}`));
    print(
      `${misses} misses: ${stays.toFixed(0)} bytes of heap each that stay; an entry of 1 byte takes ${bytes} in Redis`,
    );
    expect(stays).toBeLessThan(2_000);
  });
});

describe('on a Cluster of six nodes', () => {
  const PRIMARIES = 3;
  let cluster: RedisCluster;
  let crowd: Crowd;
  let connectionsBefore: number;

  const infoOf = (section: string) => Promise.all(cluster.nodes.map((node) => node.client().info(section)));
  const connections = async () => sum((await infoOf('clients')).map((info) => numberIn(info, 'connected_clients')));
  const busMessages = async (direction: string) => {
    const infos = await Promise.all(cluster.nodes.map((node) => node.client().call('CLUSTER', 'INFO')));
    return sum(infos.map((info) => numberIn(String(info), `cluster_stats_messages_publish_${direction}`)));
  };

  beforeAll(async () => {
    cluster = await startCluster({ primaries: PRIMARIES, replicas: 1 });
    await cluster.client().ping();
    await Promise.all(cluster.nodes.map((node) => node.client().ping()));
    connectionsBefore = await connections();
    crowd = await Crowd.start({ nodes: cluster.startupNodes });
    // So that each has a connection to each primary.
    await crowd.each('miss', 'warm-up', 30);
  });
  afterAll(async () => {
    await crowd?.stop();
    await cluster?.stop();
  });

  test('connections: one that listens, and one to each primary, at most to each node', async () => {
    const each = ((await connections()) - connectionsBefore) / PROCESSES;
    print(
      `${PROCESSES} processes: ${each.toFixed(1)} connections each, ${Math.round(crowd.heapEach / 1024)} kB of heap each`,
    );
    expect(each).toBeGreaterThanOrEqual(PRIMARIES + 1);
    expect(each).toBeLessThanOrEqual(cluster.nodes.length + 1);
  });

  test('a contended load: F messages, each to every other node: F × (nodes − 1) on the bus', async () => {
    const lock = async () => (await cluster.client().get('scale:{contended}:lock')) ?? '';
    const before = await busMessages('sent');
    const receivedBefore = await busMessages('received');
    await cluster.resetStats();
    const took = await crowd.contend('contended', async () => followersIn(await lock()) === FOLLOWERS);
    expect(sum(await crowd.each('loads'))).toBe(1);
    expect((await cluster.commandStats())['publish']).toBe(FOLLOWERS);
    const onTheBus = FOLLOWERS * (cluster.nodes.length - 1);
    await eventually(async () => (await busMessages('received')) - receivedBefore >= onTheBus, { within: 20_000 });
    expect((await busMessages('sent')) - before).toBe(onTheBus);
    print(
      `a contended load: ${FOLLOWERS} messages, ${onTheBus} on the bus; last answer ${took.toFixed(0)} ms after the load's end`,
    );
  });
});

function cpuOf(info: string): number {
  return numberIn(info, 'used_cpu_sys') + numberIn(info, 'used_cpu_user');
}
