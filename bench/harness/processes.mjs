import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { within } from './time.mjs';

const WORKER = fileURLToPath(new URL('./worker.mjs', import.meta.url));

/** A process of its own with one instance of a system, which does what it is asked to. */
export class SystemProcess {
  /** @param settings `ttl`, `lease` and `wait` in milliseconds */
  static async start(redis, system, settings = {}) {
    const started = new SystemProcess(system.name);
    try {
      started.ready = await started.call('open', { system: system.name, port: redis.port, ...settings });
      return started;
    } catch (error) {
      await started.end();
      throw error;
    }
  }

  #child;
  #exited;
  #last = 0;
  #pending = new Map();
  #told = new Map();

  constructor(name) {
    this.#child = fork(WORKER, [name], {
      execArgv: ['--expose-gc'],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      serialization: 'advanced',
    });
    this.#child.on('message', (message) => this.#receive(message));
    this.#exited = once(this.#child, 'exit').then(() => {
      for (const { reject } of this.#pending.values()) reject(new Error('the process ended'));
    });
  }

  get pid() {
    return this.#child.pid;
  }

  /** @throws what the command throws; DeadlineError when it takes longer than that */
  call(command, options = {}, milliseconds = 90_000) {
    const id = ++this.#last;
    const reply = new Promise((resolve, reject) => this.#pending.set(id, { resolve, reject }));
    this.#child.send({ id, command, options });
    return within(milliseconds, command, reply).finally(() => this.#pending.delete(id));
  }

  /** When the process tells of that, the next time. */
  told(what) {
    return within(30_000, what, new Promise((resolve) => this.#told.set(what, resolve)));
  }

  async kill() {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  async end() {
    if (this.#isRunning) await this.call('close', {}, 3_000).catch(() => {});
    if (this.#isRunning) this.#child.kill('SIGKILL');
    await this.#exited;
  }

  get #isRunning() {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  #receive({ id, result, error, told }) {
    if (told) {
      this.#told.get(told)?.(result);
      return;
    }
    const pending = this.#pending.get(id);
    if (error) pending?.reject(new Error(error));
    else pending?.resolve(result);
  }
}

/** Several processes of a system, ended whatever comes of the work. */
export async function withProcesses(count, redis, system, settings, work) {
  const starting = Array.from({ length: count }, () => SystemProcess.start(redis, system, settings));
  const started = await Promise.allSettled(starting);
  const processes = started.filter(({ status }) => status === 'fulfilled').map(({ value }) => value);
  try {
    const failed = started.find(({ status }) => status === 'rejected');
    if (failed) throw failed.reason;
    return await work(processes);
  } finally {
    await Promise.all(processes.map((process) => process.end()));
  }
}
