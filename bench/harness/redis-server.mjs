import { Redis } from 'ioredis';
import { findRedis, missingRedis } from '../../scripts/find-redis.mjs';
import { startRedis } from '../../scripts/start-redis.mjs';

/** What the harness itself sends, and what only keeps connections; `HINCRBY` counts loads, and no system sends it. */
const NOT_WORK = new Set(
  `auth client command config flushall hello hget hincrby info monitor ping quit script select subscribe
   unsubscribe`.split(/\s+/),
);

/** A redis-server of our own on a free port, and what it counts. */
export class RedisServer {
  static async start() {
    const found = findRedis({ allowInstall: true });
    if (!found) throw new Error(missingRedis());
    const { port, stop } = await startRedis(found);
    const control = new Redis({ host: '127.0.0.1', port });
    const info = await control.info('server');
    return new RedisServer(port, Number(/process_id:(\d+)/.exec(info)[1]), found.version, control, stop);
  }

  #stop;

  constructor(port, pid, version, control, stop) {
    this.port = port;
    this.pid = pid;
    this.version = version;
    this.control = control;
    this.#stop = stop;
  }

  /** What has happened since the last time: commands by name (those inside scripts too), reads of sockets, CPU in µs. */
  async counts() {
    const text = await this.control.info('everything');
    const number = (name) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(text)?.[1] ?? 0);
    const commands = {};
    for (const [, name, calls] of text.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
      if (!NOT_WORK.has(name.split('|')[0])) commands[name] = Number(calls);
    }
    return {
      commands,
      reads: number('total_reads_processed'),
      cpu: (number('used_cpu_user') + number('used_cpu_sys')) * 1e6,
    };
  }

  async resetCounts() {
    await this.control.config('RESETSTAT');
  }

  async empty() {
    await this.control.flushall();
  }

  async stop() {
    this.control.disconnect();
    await this.#stop();
  }
}
