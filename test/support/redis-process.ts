/**
 * `RedisProcess`: one redis-server process on loopback, and what can happen to it. `redis-server.ts` adds the client
 * and the counts; tests use that. Its directory is removed at `stop()`; it is killed and removed too when this process
 * ends in any other way.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { whenParentEnds } from '../../scripts/when-parent-ends.mjs';

// The second is a sentinel's.
const READY = /Ready to accept connections|\+monitor master/;

export class RedisProcess {
  private child?: ChildProcessByStdio<null, Readable, null>;
  private exited: Promise<void> = Promise.resolve();

  private constructor(
    readonly port: number,
    private readonly directory: string,
    private readonly args: readonly string[],
  ) {}

  /** Starts a server; `files` are written to its directory, which is also its working directory. */
  static async start(port: number, args: readonly string[], files: Record<string, string> = {}): Promise<RedisProcess> {
    const directory = await mkdtemp(join(tmpdir(), 'redis-test-'));
    for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
    const server = new RedisProcess(port, directory, args);
    try {
      await server.launch();
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  get running(): boolean {
    return this.child !== undefined && this.child.exitCode === null && this.child.signalCode === null;
  }

  /** SIGKILL: the sockets close, nothing is saved. */
  async kill(): Promise<void> {
    this.child?.kill('SIGKILL');
    await this.exited;
  }

  /** SIGSTOP: the sockets stay open and nothing answers, until `thaw()`. */
  freeze(): void {
    this.child?.kill('SIGSTOP');
  }

  thaw(): void {
    this.child?.kill('SIGCONT');
  }

  /** Kills it if it still runs, and starts it anew on the same port with nothing in it. */
  async restart(): Promise<void> {
    await this.kill();
    await this.launch();
  }

  async stop(): Promise<void> {
    await this.kill();
    await rm(this.directory, { recursive: true, force: true });
  }

  private async launch(): Promise<void> {
    const child = spawn(process.env['REDIS_SERVER'] ?? 'redis-server', this.args, {
      cwd: this.directory,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.child = child;
    const callOff = whenParentEnds('kill -9 "$1"; rm -rf "$2"', child.pid ?? '', this.directory);
    this.exited = new Promise((resolve) => {
      child.once('exit', () => resolve());
      child.once('error', () => resolve());
    });
    void this.exited.then(callOff);

    // A server that a test forgot must not keep jest from ending.
    child.unref();
    (child.stdout as Socket).unref();
    await untilReady(child, this.exited);
    child.stdout.resume();
  }
}

/** Reads the server's own log, because another server could be the one that answers on that port. */
function untilReady(child: ChildProcessByStdio<null, Readable, null>, exited: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    let log = '';
    const onData = (chunk: Buffer): void => {
      log += chunk.toString();
      if (!READY.test(log)) return;
      child.stdout.off('data', onData);
      resolve();
    };
    child.stdout.on('data', onData);
    child.once('error', reject);
    void exited.then(() => reject(new Error(`redis-server ended before it was ready:\n${log}`)));
  });
}
