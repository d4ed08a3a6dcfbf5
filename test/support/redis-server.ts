/**
 * A real Redis server for a test file: `const redis = await startRedis()` in `beforeAll`, `await redis.stop()` in
 * `afterAll`. On loopback, on a free port, without persistence.
 *
 * - `redis.port`, `redis.url`: for the client under test.
 * - `redis.client()`: the test's own client, always the same one, closed at `stop()`. It waits while the server is away.
 * - `freeze()`/`thaw()`: connections stay open, nothing answers. `kill()`: they close. `restart()`: same port, empty.
 * - `commandStats()`: how often each command ran since `resetStats()`, those inside scripts included, housekeeping not.
 *   What a test sends by `client()` counts too: read the stats first.
 * - `startRedis({ users })`: ACL lines, such as `user app on >secret ~* resetchannels +@all`. The default user stays
 *   as it is, for `client()`.
 */
import { Redis } from 'ioredis';
import { freePort } from '../../scripts/free-port.mjs';
import { type CommandStats, parseCommandStats, totalCommands } from './command-stats.js';
import { RedisProcess } from './redis-process.js';

export interface RedisServerOptions {
  /** A free one by default. */
  port?: number;
  /** Further options of the command line, such as `['--maxmemory', '2mb']`. */
  args?: readonly string[];
  /** ACL lines. */
  users?: string;
  /** The text of a configuration file that the server may rewrite, as a sentinel does. */
  config?: string;
}

/** Starts a server and resolves when it accepts connections. */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const port = options.port ?? (await freePort());
  const files: Record<string, string> = { 'redis.conf': options.config ?? '' };
  // The last one: a replica is served at once, not after five seconds of waiting for others.
  const args = [
    'redis.conf',
    '--bind',
    '127.0.0.1',
    '--port',
    String(port),
    '--save',
    '',
    '--appendonly',
    'no',
    '--repl-diskless-sync-delay',
    '0',
  ];
  if (options.users !== undefined) {
    files['users.acl'] = `${options.users}\n`;
    args.push('--aclfile', 'users.acl');
  }
  return new RedisServer(await RedisProcess.start(port, [...args, ...(options.args ?? [])], files));
}

export class RedisServer {
  readonly host = '127.0.0.1';
  readonly port: number;
  readonly url: string;
  private control?: Redis;

  constructor(private readonly server: RedisProcess) {
    this.port = server.port;
    this.url = `redis://${this.host}:${this.port}`;
  }

  get running(): boolean {
    return this.server.running;
  }

  client(): Redis {
    if (this.control) return this.control;
    this.control = new Redis({
      host: this.host,
      port: this.port,
      maxRetriesPerRequest: null,
      retryStrategy: () => 20,
      maxLoadingRetryTime: 20,
      disconnectTimeout: 100,
    });
    // Without a listener ioredis prints each failed connection, and here they fail on purpose.
    this.control.on('error', () => {});
    return this.control;
  }

  async stop(): Promise<void> {
    this.control?.disconnect();
    await this.server.stop();
  }

  kill(): Promise<void> {
    return this.server.kill();
  }

  restart(): Promise<void> {
    return this.server.restart();
  }

  freeze(): void {
    this.server.freeze();
  }

  thaw(): void {
    this.server.thaw();
  }

  /** Calls by command since the last `resetStats()`, such as `{ get: 3, evalsha: 1 }`. */
  async commandStats(): Promise<CommandStats> {
    return parseCommandStats(await this.client().info('commandstats'));
  }

  /** The sum of `commandStats()`. */
  async commandCount(): Promise<number> {
    return totalCommands(await this.commandStats());
  }

  async resetStats(): Promise<void> {
    await this.client().config('RESETSTAT');
  }

  /** Milliseconds to live; -1: without expiry, -2: not there. */
  pttl(key: string): Promise<number> {
    return this.client().pttl(key);
  }
}
