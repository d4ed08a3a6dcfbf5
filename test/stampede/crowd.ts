/**
 * A crowd: several Node processes, each with a cache of its own on one Redis, and many callers in each.
 *
 *     const crowd = await startCrowd({ connection: redis.url }, 4);
 *     const answers = await crowd.ask('key', { callers: 250, load: { takes: 200, gives: 'x' } });
 *     expect(crowd.loads('key')).toHaveLength(1);
 *     await crowd.stop();
 *
 * Options not given are the library's defaults. Times are milliseconds of the machine's monotonic clock, which all processes
 * share; what each makes of the time of day differs by a few.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CacheOptions, LoadOptions, LockOptions } from 'nestjs-stampede-cache';
import { eventually } from '../support/eventually.js';
import { startProcesses, type WorkerProcess } from '../support/processes.js';
import type { RedisServer } from '../support/redis-server.js';

/** What a loader does: how many milliseconds it takes, and what it gives or with which message it throws. */
export interface LoadPlan {
  readonly takes?: number;
  readonly gives?: unknown;
  readonly fails?: string;
}

export interface Question {
  /** How many ask in each process; 1 by default. */
  readonly callers?: number;
  readonly load?: LoadPlan;
  /** A `ttl` of a minute by default. `refuse` is a `cacheIf` that says no. */
  readonly options?: Omit<LoadOptions, 'cacheIf' | 'signal' | 'codec'> & { readonly refuse?: boolean };
}

export interface Answer {
  readonly value?: unknown;
  readonly error?: { readonly name: string; readonly message: string; readonly code?: string };
  readonly at: number;
}

export interface Insistence extends Question {
  readonly until: number;
  /** Milliseconds between an answer and the next question. */
  readonly pause: number;
  /** Any other value than what the load gives counts as an error. */
  readonly insistOnValue?: boolean;
}

export interface Insisted {
  readonly answered: number;
  /** How long each answer took, in milliseconds. */
  readonly times: readonly number[];
  /** By how much each pause was too long: what a busy machine adds to everything. */
  readonly lateness: readonly number[];
  readonly error?: Answer['error'];
  readonly lastAt: number;
}

export interface ManyQuestion extends Pick<LoadOptions, 'lease' | 'wait'> {
  /** The moment in which it asks. */
  readonly at?: number;
  /** Milliseconds that loading takes, however many keys there are. */
  readonly takes?: number;
}

export interface Held {
  readonly fencingToken: number;
  readonly from: number;
  readonly until: number;
}

interface Member {
  start(): Promise<void>;
  ask(key: string, question: Question & { readonly at?: number }): Promise<Answer[]>;
  askMany(keys: readonly string[], question: ManyQuestion): Promise<unknown[]>;
  loadedTogether(): Promise<number[]>;
  keepAsking(key: string, insistence: Insistence): Promise<Insisted>;
  evict(key: string): Promise<void>;
  get(key: string): Promise<unknown>;
  warnings(): Promise<string[]>;
  lock(key: string, plan: { callers: number; hold: number; options: Omit<LockOptions, 'signal'> }): Promise<Held[]>;
}

export type CrowdProcess = WorkerProcess<Member>;

export interface Load {
  readonly pid: number;
  readonly beganAt: number;
  /** `undefined` while it runs, and for ever if its process was killed. */
  endedAt: number | undefined;
}

export interface CrowdSettings {
  /** A URL, or options of ioredis. */
  readonly connection?: string | Record<string, unknown>;
  /** Or the nodes of a Cluster. */
  readonly nodes?: readonly { host: string; port: number }[];
  readonly namespace?: string;
  readonly options?: CacheOptions;
}

const SCRIPT = new URL('./crowd.worker.mjs', import.meta.url);

/** Starts so many processes and resolves when each is connected. */
export async function startCrowd(settings: CrowdSettings, processes: number): Promise<Crowd> {
  const crowd = new Crowd(settings);
  await crowd.grow(processes);
  return crowd;
}

export class Crowd {
  readonly processes: CrowdProcess[] = [];
  readonly namespace: string;
  readonly #settings: CrowdSettings;
  readonly #directory = mkdtempSync(join(tmpdir(), 'crowd-'));
  readonly #log = join(this.#directory, 'loads');

  constructor(settings: CrowdSettings) {
    this.#settings = settings;
    this.namespace = settings.namespace ?? 'crowd';
    writeFileSync(this.#log, '');
  }

  /** Starts further processes, perhaps with a connection of their own. */
  async grow(count: number, settings: CrowdSettings = {}): Promise<CrowdProcess[]> {
    const crowd = { options: {}, ...this.#settings, ...settings, namespace: this.namespace, log: this.#log };
    const started = await startProcesses<Member>(SCRIPT, count, { env: { CROWD: JSON.stringify(crowd) } });
    this.processes.push(...started);
    await Promise.all(started.map((process) => process.call('start')));
    return started;
  }

  /** Asks in all processes at one moment. Answers are in the order in which they came. */
  async ask(key: string, question: Question): Promise<Answer[]> {
    const at = now() + 50;
    const answers = await Promise.all(this.processes.map((each) => each.call('ask', key, { ...question, at })));
    return answers.flat().sort((a, b) => a.at - b.at);
  }

  /** The loads of a key, in the order in which they began. */
  loads(key: string): Load[] {
    const loads: Load[] = [];
    for (const line of readFileSync(this.#log, 'utf8').split('\n').filter(Boolean)) {
      const noted = JSON.parse(line) as { what: 'begins' | 'ends'; key: string; pid: number; at: number };
      if (noted.key !== key) continue;
      if (noted.what === 'begins') loads.push({ pid: noted.pid, beganAt: noted.at, endedAt: undefined });
      else loads.find(({ pid, endedAt }) => pid === noted.pid && endedAt === undefined)!.endedAt = noted.at;
    }
    return loads;
  }

  /** Waits for the first load of a key, and says who it is that loads, and who the others are. */
  async leader(key: string): Promise<{ leader: CrowdProcess; others: CrowdProcess[] }> {
    const load = await eventually(() => this.loads(key)[0], { every: 5 });
    return {
      leader: this.processes.find(({ pid }) => pid === load.pid)!,
      others: this.processes.filter(({ pid }) => pid !== load.pid),
    };
  }

  /**
   * Waits until every process hears wake-ups: each has subscribed, and has sent itself a message to be sure. Counts these
   * messages, so the server's statistics must be younger than the crowd.
   */
  async untilListening(redis: RedisServer): Promise<void> {
    await eventually(async () => {
      const channels = (await redis.client().pubsub('CHANNELS', `${this.namespace}:wake:*`)) as string[];
      const { publish = 0 } = await redis.commandStats();
      return channels.length === this.processes.length && publish >= this.processes.length;
    });
  }

  lockName(key: string): string {
    return `${this.namespace}:{${key}}:lock`;
  }

  valueName(key: string): string {
    return `${this.namespace}:{${key}}`;
  }

  async stop(): Promise<void> {
    await Promise.all(this.processes.map((process) => process.stop()));
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Milliseconds from the end of the (last) load to the last answer. */
export function tail(loads: readonly Load[], answers: readonly Answer[]): number {
  return Math.max(...answers.map(({ at }) => at)) - Math.max(...loads.map(({ endedAt }) => endedAt ?? 0));
}

export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** A measured number, for whoever reads the run. Not by `console`, which jest decorates. */
export function print(line: string): void {
  process.stdout.write(`      ${line}\n`);
}
