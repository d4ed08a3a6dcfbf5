/**
 * What the tests of the core play in: a clock that the test moves, one server in memory, and some processes on it, each with
 * a cache, locks and a store that may be made to fail. After each test everything is closed, and then there must be no
 * timer and no lock left.
 */
import { afterEach, expect } from '@jest/globals';
import { type CacheParts, createStampede, type Stampede } from '../../lib/core/create.js';
import type { CacheEvent } from '../../lib/core/events.js';
import type { CacheOptions } from '../../lib/core/options.js';
import { type MemoryLock, MemoryServer } from '../../lib/memory/memory-server.js';
import { MemoryStore } from '../../lib/memory/memory-store.js';
import { settle, TestClock } from '../support/clock.js';
import { FaultyStore } from './faulty-store.js';

export interface Process extends Stampede {
  readonly store: FaultyStore;
  /** Every event of this process, in order. */
  readonly events: CacheEvent[];
}

export interface SettingOptions extends CacheOptions, Pick<CacheParts, 'errorCodec' | 'logger'> {
  /** How many processes. Default 1. */
  readonly processes?: number;
  /** What stands in for `Math.random`. Default: always one half. */
  readonly random?: () => number;
}

export class Setting {
  readonly clock = new TestClock();
  readonly server = new MemoryServer({ clock: this.clock, now: () => 1_700_000_000_000 + this.clock.now() });
  readonly processes: readonly Process[];

  constructor({ processes = 1, random = () => 0.5, errorCodec, logger, ...options }: SettingOptions) {
    this.processes = Array.from({ length: processes }, () => {
      const store = new FaultyStore(new MemoryStore({ server: this.server }), this.clock);
      const parts = { store, clock: this.clock, random, ...(errorCodec && { errorCodec }), ...(logger && { logger }) };
      const stampede = createStampede(parts, options);
      const events: CacheEvent[] = [];
      stampede.cache.events.subscribe((event) => events.push(event));
      return { ...stampede, store, events };
    });
  }

  /** The first process, for tests that need no other. */
  get cache(): Stampede['cache'] {
    return this.process(0).cache;
  }

  get locks(): Stampede['locks'] {
    return this.process(0).locks;
  }

  get store(): FaultyStore {
    return this.process(0).store;
  }

  get events(): CacheEvent[] {
    return this.process(0).events;
  }

  process(index: number): Process {
    const process = this.processes[index];
    if (!process) throw new Error(`there is no process ${index}`);
    return process;
  }

  /** The lock of a key, as it lies in the server. */
  lockOf(key: string, kind = 'cache'): MemoryLock | undefined {
    return this.server.locks.get(`${kind} ${key}`);
  }

  /** The lock is gone, as after a failover; nobody is told. */
  loseLock(key: string, kind = 'cache'): void {
    this.server.locks.delete(`${kind} ${key}`);
  }

  /** The commands sent by all processes. */
  readonly sent = (...commands: Parameters<FaultyStore['count']>): number =>
    this.processes.reduce((sum, { store }) => sum + store.count(...commands), 0);

  /** Locks that no crashed process has left. */
  get locksLeft(): string[] {
    const crashed = this.processes.filter(({ store }) => store.crashed).map(({ store }) => store.process);
    const names = new Set(this.processes.flatMap(({ store }) => [...store.locks]));
    return [...names].filter((name) => {
      const token = this.server.locks.get(name)?.token;
      return token !== undefined && !crashed.includes(token.slice(0, token.indexOf('#')));
    });
  }

  /** Closes every process; moves the clock as far as that takes. */
  async close(): Promise<void> {
    let closed = false;
    const closing = Promise.all(this.processes.map((process) => process.close())).then(() => {
      closed = true;
    });
    for (let waited = 0; !closed && waited < 20_000; waited += 10) await this.clock.advance(waited === 0 ? 0 : 10);
    if (!closed) throw new Error('closing took more than 20 s');
    await closing;
    await settle();
  }
}

const settings: Setting[] = [];

export function setUp(options: SettingOptions = {}): Setting {
  const setting = new Setting(options);
  settings.push(setting);
  return setting;
}

afterEach(async () => {
  for (const setting of settings.splice(0)) {
    await setting.close();
    expect(setting.locksLeft).toEqual([]);
    expect(setting.clock.pending).toBe(0);
  }
});
