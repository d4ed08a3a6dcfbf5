/**
 * A real Redis Cluster: `const cluster = await startCluster({ primaries: 3, replicas: 1 })`, `await cluster.stop()`.
 *
 * - `cluster.nodes`: every server (`RedisServer`: kill, freeze, stats), first the `primaries`, then the `replicas`;
 *   which is which changes after a failover, the lists don't.
 * - `cluster.startupNodes`: what `new Cluster(…)` of ioredis takes.
 * - `cluster.client()`: the test's own client, closed at `stop()`.
 * - `cluster.primaryOf(key)`: the server that held the key's slot at the start.
 * - `cluster.commandStats()`, `commandCount()`, `resetStats()`: over all nodes. A replica also counts the writes that its
 *   primary sends it: measure without replicas.
 */
import { Cluster } from 'ioredis';
import { type CommandStats, totalCommands } from './command-stats.js';
import { eventually } from './eventually.js';
import { type RedisServer, startRedis } from './redis-server.js';

export interface RedisClusterOptions {
  /** 3 by default, the least that Redis calls a cluster which can fail over. */
  primaries?: number;
  /** How many for each primary; 0 by default. */
  replicas?: 0 | 1;
}

const SLOTS = 16_384;

/** Starts a Cluster and resolves when every node says that it is whole and every replica follows its primary. */
export async function startCluster({ primaries = 3, replicas = 0 }: RedisClusterOptions = {}): Promise<RedisCluster> {
  const args = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000', '--cluster-replica-validity-factor', '0'];
  const count = primaries * (1 + replicas);
  const nodes = await Promise.all(Array.from({ length: count }, () => startRedis({ args })));
  const cluster = new RedisCluster(nodes, primaries);
  try {
    await form(cluster);
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  return cluster;
}

export class RedisCluster {
  readonly primaries: readonly RedisServer[];
  readonly replicas: readonly RedisServer[];
  readonly startupNodes: readonly { host: string; port: number }[];
  private control?: Cluster;

  constructor(
    readonly nodes: readonly RedisServer[],
    primaries: number,
  ) {
    this.primaries = nodes.slice(0, primaries);
    this.replicas = nodes.slice(primaries);
    this.startupNodes = nodes.map(({ host, port }) => ({ host, port }));
  }

  client(): Cluster {
    if (this.control) return this.control;
    this.control = new Cluster([...this.startupNodes], {
      clusterRetryStrategy: () => 50,
      redisOptions: { disconnectTimeout: 100 },
    });
    this.control.on('error', () => {});
    return this.control;
  }

  async primaryOf(key: string): Promise<RedisServer> {
    const slot = Number(await this.nodes[0]!.client().call('CLUSTER', 'KEYSLOT', key));
    return this.primaries.find((_, index) => slot < slotsFrom(index + 1, this.primaries.length))!;
  }

  async commandStats(): Promise<CommandStats> {
    const sum: CommandStats = {};
    for (const stats of await Promise.all(this.nodes.map((node) => node.commandStats()))) {
      for (const [name, calls] of Object.entries(stats)) sum[name] = (sum[name] ?? 0) + calls;
    }
    return sum;
  }

  async commandCount(): Promise<number> {
    return totalCommands(await this.commandStats());
  }

  async resetStats(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.resetStats()));
  }

  async stop(): Promise<void> {
    this.control?.disconnect();
    await Promise.all(this.nodes.map((node) => node.stop()));
  }
}

/** The first slot of a primary: they are dealt out in equal ranges. */
function slotsFrom(index: number, primaries: number): number {
  return Math.floor((SLOTS * index) / primaries);
}

async function form({ nodes, primaries, replicas }: RedisCluster): Promise<void> {
  await Promise.all(
    primaries.map(async (node, index) => {
      // Different epochs from the start, or the nodes spend seconds on settling who is which.
      await node.client().call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
      // Not ADDSLOTSRANGE, which Redis 6.2 doesn't have.
      const from = slotsFrom(index, primaries.length);
      const slots = Array.from({ length: slotsFrom(index + 1, primaries.length) - from }, (_, offset) => from + offset);
      await node.client().call('CLUSTER', 'ADDSLOTS', ...slots);
    }),
  );
  const [first, ...others] = nodes;
  for (const node of others) await node.client().call('CLUSTER', 'MEET', first!.host, first!.port);
  await Promise.all(nodes.map((node) => untilInfo(node, `cluster_known_nodes:${nodes.length}`)));

  await Promise.all(
    replicas.map(async (replica, index) => {
      const id = String(await primaries[index]!.client().call('CLUSTER', 'MYID'));
      await eventually(async () => (await replica.client().call('CLUSTER', 'REPLICATE', id)) === 'OK', within);
      await eventually(
        async () => (await replica.client().info('replication')).includes('master_link_status:up'),
        within,
      );
    }),
  );
  await Promise.all(nodes.map((node) => untilInfo(node, 'cluster_state:ok')));
}

const within = { within: 20_000 };

async function untilInfo(node: RedisServer, line: string): Promise<void> {
  await eventually(async () => String(await node.client().call('CLUSTER', 'INFO')).includes(line), within);
}
