/**
 * Node processes that a test starts, calls, freezes and kills.
 *
 * The script (`.mjs`, next to the spec) says what can be called; it imports the built library by its own name:
 *
 *     // load.worker.mjs
 *     import { serve } from '../support/worker.mjs';
 *     serve({ async load(key) { return cache.getOrLoad(key, …); } });
 *
 *     // load.spec.ts
 *     interface LoadWorker { load(key: string): Promise<string> }
 *     const workers = await startProcesses<LoadWorker>(new URL('./load.worker.mjs', import.meta.url), 4, { env: { REDIS_URL } });
 *     await Promise.all(workers.map((worker) => worker.call('load', 'some key')));
 *     await Promise.all(workers.map((worker) => worker.stop()));
 *
 * - Arguments and results are structured clones. An error thrown in the worker is thrown here as an `Error` with its
 *   name, message, stack, cause and plain properties (`code`, `status`, …); not as an instance of its class.
 * - An unhandled rejection in the worker, or Node's warning of too many listeners, fails the calls that are under way, or
 *   else the next call or `stop()`.
 * - `kill(signal)` (SIGKILL by default) and `exited` tell how it ended; calls under way then fail.
 * - `freeze()`/`thaw()`: SIGSTOP/SIGCONT. `stop()`: lets it end by itself, for two seconds at most.
 * - None outlives the process that started it.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { whenParentEnds } from '../../scripts/when-parent-ends.mjs';

export interface ProcessOptions {
  /** Added to this process's environment. */
  env?: Record<string, string>;
}

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** What `worker.mjs` sends. */
type Message =
  | { type: 'ready' }
  | { type: 'result'; id: number; value: unknown }
  | { type: 'error'; id: number; error: SentError }
  | { type: 'unhandled'; error: SentError };

interface SentError {
  name: string;
  message: string;
  stack?: string;
  properties: Record<string, unknown>;
  cause?: SentError;
}

type MethodName<Methods> = {
  [K in keyof Methods]: Methods[K] extends (...args: never[]) => unknown ? K : never;
}[keyof Methods] &
  string;
type Arguments<Method> = Method extends (...args: infer A) => unknown ? A : never;
type Result<Method> = Method extends (...args: never[]) => infer R ? Awaited<R> : never;

interface PendingCall {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** Starts `count` processes of one script and resolves when each has called `serve`. */
export async function startProcesses<Methods>(
  script: URL | string,
  count: number,
  { env = {} }: ProcessOptions = {},
): Promise<WorkerProcess<Methods>[]> {
  const workers = Array.from({ length: count }, () => new WorkerProcess<Methods>(script, env));
  try {
    await Promise.all(workers.map((worker) => worker.ready));
  } catch (error) {
    await Promise.all(workers.map((worker) => worker.kill()));
    throw error;
  }
  return workers;
}

export class WorkerProcess<Methods> {
  readonly exited: Promise<Exit>;
  readonly ready: Promise<void>;
  private readonly child: ChildProcess;
  private readonly calls = new Map<number, PendingCall>();
  private lastId = 0;
  private fault?: Error;

  constructor(script: URL | string, env: Record<string, string>) {
    this.child = fork(typeof script === 'string' ? script : fileURLToPath(script), {
      env: { ...process.env, ...env },
      // Not jest's own flags; and clones, so that Date, bigint and undefined arrive as what they are.
      execArgv: [],
      serialization: 'advanced',
    });
    const callOff = whenParentEnds('kill -9 "$1"', this.child.pid ?? '');
    this.exited = new Promise((resolve) => this.child.once('exit', (code, signal) => resolve({ code, signal })));
    this.ready = new Promise((resolve, reject) => {
      this.child.on('message', (message: Message) => (message.type === 'ready' ? resolve() : this.receive(message)));
      void this.exited.then((exit) => {
        callOff();
        const error = new Error(`the worker process ended (${exit.signal ?? exit.code})`);
        reject(error);
        this.failCalls(error);
      });
    });
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** Calls a method that the script serves. */
  async call<Name extends MethodName<Methods>>(
    method: Name,
    ...args: Arguments<Methods[Name]>
  ): Promise<Result<Methods[Name]>> {
    this.throwFault();
    if (!this.child.connected) throw new Error('the worker process has ended');
    const id = ++this.lastId;
    const value = await new Promise((resolve, reject) => {
      this.calls.set(id, { resolve, reject });
      this.child.send({ id, method, args }, (error) => error && this.settle(id)?.reject(error));
    });
    return value as Result<Methods[Name]>;
  }

  kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<Exit> {
    this.child.kill(signal);
    return this.exited;
  }

  freeze(): void {
    this.child.kill('SIGSTOP');
  }

  thaw(): void {
    this.child.kill('SIGCONT');
  }

  /** Ends it, and throws if a rejection in it went unhandled and no call told of it. */
  async stop(): Promise<Exit> {
    this.thaw();
    if (this.child.connected) this.child.disconnect();
    const timer = setTimeout(() => this.child.kill('SIGKILL'), 2000);
    const exit = await this.exited;
    clearTimeout(timer);
    this.throwFault();
    return exit;
  }

  private receive(message: Exclude<Message, { type: 'ready' }>): void {
    if (message.type === 'result') this.settle(message.id)?.resolve(message.value);
    if (message.type === 'error') this.settle(message.id)?.reject(toError(message.error));
    if (message.type !== 'unhandled') return;
    const fault = toError(message.error);
    if (this.calls.size > 0) this.failCalls(fault);
    else this.fault = fault;
  }

  private settle(id: number): PendingCall | undefined {
    const call = this.calls.get(id);
    this.calls.delete(id);
    return call;
  }

  private failCalls(error: Error): void {
    for (const id of [...this.calls.keys()]) this.settle(id)?.reject(error);
  }

  private throwFault(): void {
    const { fault } = this;
    this.fault = undefined;
    if (fault) throw fault;
  }
}

function toError({ name, message, stack, properties, cause }: SentError): Error {
  const error = new Error(message, cause && { cause: toError(cause) });
  return Object.assign(error, properties, { name, stack });
}
