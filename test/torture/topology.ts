/** The Redis of a run, and what can be done to it as a whole. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../support/eventually.js';
import { type FaultProxy, startProxy } from '../support/fault-proxy.js';
import { type RedisSentinel, startSentinel } from '../support/redis-sentinel.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import type { Topology } from './plan.js';

export interface Servers {
  /** The one that has the data now. */
  readonly primary: RedisServer;
  /** By what a process connects, and, if there is one, the proxy on its way. */
  connect(): Promise<{ connection: unknown; proxy?: FaultProxy }>;
  restart(away: number, data: 'kept' | 'lost'): Promise<void>;
  failOver(): Promise<void>;
  killPrimary(): Promise<void>;
  stop(): Promise<void>;
}

export function startServers(topology: Topology): Promise<Servers> {
  return topology === 'standalone' ? Standalone.start() : Sentinel.start();
}

/** One server that keeps each write it has acknowledged, and each process behind a proxy of its own. */
class Standalone implements Servers {
  readonly #proxies: FaultProxy[] = [];

  private constructor(
    readonly primary: RedisServer,
    readonly directory: string,
  ) {}

  static async start(): Promise<Standalone> {
    const directory = mkdtempSync(join(tmpdir(), 'torture-redis-'));
    // Written before the reply is, so that a kill loses nothing; a power cut could, but there is none.
    const args = ['--appendonly', 'yes', '--appendfsync', 'no', '--dir', directory];
    return new Standalone(await startRedis({ args }), directory);
  }

  async connect(): Promise<{ connection: unknown; proxy: FaultProxy }> {
    const proxy = await startProxy(this.primary.port);
    this.#proxies.push(proxy);
    return { connection: { port: proxy.port }, proxy };
  }

  async restart(away: number, data: 'kept' | 'lost'): Promise<void> {
    await this.primary.kill();
    if (data === 'lost') {
      for (const name of readdirSync(this.directory)) rmSync(join(this.directory, name), { recursive: true });
    }
    await sleep(away);
    await this.primary.restart();
  }

  failOver(): Promise<void> {
    throw new Error('There is nothing to fail over to.');
  }

  killPrimary(): Promise<void> {
    throw new Error('There is nothing to fail over to.');
  }

  async stop(): Promise<void> {
    await Promise.all(this.#proxies.map((proxy) => proxy.stop()));
    await this.primary.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

class Sentinel implements Servers {
  private constructor(
    readonly sentinel: RedisSentinel,
    public primary: RedisServer,
  ) {}

  static async start(): Promise<Sentinel> {
    const sentinel = await startSentinel();
    // A busy machine, or a server that is frozen for a moment, is no failover.
    await Promise.all(
      sentinel.sentinels.map((each) =>
        each.client().call('SENTINEL', 'SET', sentinel.name, 'down-after-milliseconds', '5000'),
      ),
    );
    return new Sentinel(sentinel, await sentinel.primary());
  }

  async connect(): Promise<{ connection: unknown }> {
    return { connection: this.sentinel.options };
  }

  restart(): Promise<void> {
    throw new Error('Under sentinels a server that is restarted is a failover.');
  }

  async failOver(): Promise<void> {
    this.primary = await this.sentinel.failover();
  }

  async killPrimary(): Promise<void> {
    const before = this.primary;
    await before.kill();
    this.primary = await eventually(
      async () => {
        const primary = await this.sentinel.primary();
        return primary !== before && primary;
      },
      { within: 30_000 },
    );
    // Not as a second primary, which the sentinels would end only ten seconds later.
    await before.restart();
    await before.client().replicaof(this.primary.host, this.primary.port);
    await eventually(async () => (await before.client().info('replication')).includes('master_link_status:up'), {
      within: 30_000,
    });
  }

  stop(): Promise<void> {
    return this.sentinel.stop();
  }
}
