/**
 * A primary and a replica under three sentinels: `const sentinel = await startSentinel()`, `await sentinel.stop()`.
 *
 * - `sentinel.options`: what `new Redis(…)` of ioredis takes.
 * - `sentinel.servers`: the two servers; `await sentinel.primary()`: the one that all sentinels name now.
 * - `await sentinel.failover()`: asks for a failover and returns the new primary. The old one has become its replica,
 *   and its clients keep their connections: what they write is refused by `READONLY`.
 * - For a lost primary: `await (await sentinel.primary()).kill()`, then `eventually` another one.
 */
import { eventually } from './eventually.js';
import { type RedisServer, startRedis } from './redis-server.js';

const NAME = 'main';
const QUORUM = 2;

/** Starts all five and resolves when each sentinel knows the others and the replica. */
export async function startSentinel(): Promise<RedisSentinel> {
  const primary = await startRedis();
  const replica = await startRedis({ args: ['--replicaof', `${primary.host} ${primary.port}`] });
  const servers = [primary, replica];
  // Before the sentinels look: what they miss at their first look they find out only ten seconds later.
  await untilReplicates(replica);

  const config = [
    `sentinel monitor ${NAME} ${primary.host} ${primary.port} ${QUORUM}`,
    `sentinel down-after-milliseconds ${NAME} 500`,
    `sentinel failover-timeout ${NAME} 3000`,
  ].join('\n');
  const start = () => startRedis({ config: `${config}\n`, args: ['--sentinel'] });
  const group = new RedisSentinel(servers, await Promise.all([start(), start(), start()]));
  try {
    await eventually(
      () => group.every((state) => state.includes('status=ok') && state.includes('slaves=1,sentinels=3')),
      within,
    );
  } catch (error) {
    await group.stop();
    throw error;
  }
  return group;
}

export class RedisSentinel {
  readonly name = NAME;
  readonly options: { sentinels: { host: string; port: number }[]; name: string };

  constructor(
    readonly servers: readonly RedisServer[],
    readonly sentinels: readonly RedisServer[],
  ) {
    this.options = { sentinels: sentinels.map(({ host, port }) => ({ host, port })), name: NAME };
  }

  /** The server that every sentinel names as primary; waits until they agree. */
  primary(): Promise<RedisServer> {
    return eventually(async () => {
      const states = await this.states();
      return this.servers.find(({ host, port }) => states.every((state) => state.includes(`address=${host}:${port},`)));
    }, within);
  }

  async failover(): Promise<RedisServer> {
    const before = await this.primary();
    // Refused while a sentinel has not heard from the replica for a moment, or while another failover goes on.
    await eventually(
      async () => (await this.sentinels[0]!.client().call('SENTINEL', 'FAILOVER', NAME)) === 'OK',
      within,
    );
    const after = this.servers.find((server) => server !== before)!;
    await eventually(async () => (await this.primary()) === after, within);
    // The sentinels do this themselves, but ten seconds later, and close the clients' connections, which is the easy case.
    await before.client().replicaof(after.host, after.port);
    await untilReplicates(before);
    return after;
  }

  async stop(): Promise<void> {
    await Promise.all([...this.sentinels, ...this.servers].map((server) => server.stop()));
  }

  async every(check: (state: string) => boolean): Promise<boolean> {
    return (await this.states()).every(check);
  }

  /** Each sentinel's line about the primary: `name=main,status=ok,address=127.0.0.1:10000,slaves=1,sentinels=3`. */
  private async states(): Promise<string[]> {
    const infos = await Promise.all(this.sentinels.map((sentinel) => sentinel.client().info('sentinel')));
    return infos.map((info) => /^master0:(.*)$/m.exec(info)?.[1]?.trim() ?? '');
  }
}

async function untilReplicates(replica: RedisServer): Promise<void> {
  await eventually(async () => (await replica.client().info('replication')).includes('master_link_status:up'), within);
}

const within = { within: 20_000 };
