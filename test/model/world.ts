/** Several processes on one server, with everything that can happen to them as actions. */
import type { Scheduler } from 'fast-check';
import type { Clock } from '../../lib/core/clock.js';
import { createStampede, type Stampede } from '../../lib/core/create.js';
import { CacheWaitTimeoutError } from '../../lib/core/errors.js';
import type { CacheOptions, LoadOptions } from '../../lib/core/options.js';
import type { ResolvedLoadOptions } from '../../lib/core/resolved-options.js';
import { MemoryServer } from '../../lib/memory/memory-server.js';
import { MemoryStore } from '../../lib/memory/memory-store.js';
import { settle, TestClock } from '../support/clock.js';
import type { Action, CallAction } from './actions.js';
import {
  type CallRecord,
  History,
  type LoadRecord,
  type LockRecord,
  type Origin,
  type WriteRecord,
} from './history.js';
import { ScheduledStore } from './scheduled-store.js';

/** A load that is about to run: with which lock, if it has one. */
interface Starting {
  readonly alone: boolean;
  readonly lock: LockRecord | undefined;
}

interface Process extends Stampede {
  readonly index: number;
  readonly store: ScheduledStore;
  /** Loads, by key, that an event has told and whose loader has not run yet; the last one's runs first. */
  readonly starting: Map<string, Starting[]>;
  /** Keys that the near cache has answered in this turn. */
  readonly nearHits: Set<string>;
}

export class World {
  readonly history = new History();
  readonly #clock = new TestClock();
  readonly #server = new MemoryServer({ clock: this.#clock, now: () => this.#clock.now() });
  readonly #processes: readonly Process[];
  readonly #scheduler: Scheduler;
  readonly #keys = new Set<string>();
  readonly #resolved = new Map<string, ResolvedLoadOptions>();

  constructor(scheduler: Scheduler, processes: number, options: CacheOptions) {
    this.#scheduler = scheduler;
    this.#processes = Array.from({ length: processes }, (_, index) => this.#start(index, options));
  }

  #start(index: number, options: CacheOptions): Process {
    const memory = new MemoryStore({ server: this.#server });
    const store = new ScheduledStore(memory, index, this.#scheduler, this.history, this.#clock);
    const parts = { store, clock: ticking(this.#clock), random: () => 0.5 };
    const process: Process = {
      ...createStampede(parts, options),
      index,
      store,
      starting: new Map(),
      nearHits: new Set(),
    };
    process.cache.events.subscribe((event) => {
      if (event.type === 'near-hit') process.nearHits.add(event.key);
      if (event.type === 'load') this.#starts(process, event);
      if (event.type === 'store-error') this.history.troubled(index, event.command);
    });
    return process;
  }

  /** Plays the actions in their order, and in between whatever the scheduler picks; then waits until all is over. */
  async play(actions: readonly Action[]): Promise<void> {
    this.#scheduler.scheduleSequence(
      actions.map((action) => ({ label: JSON.stringify(action), builder: () => this.#act(action) })),
    );
    await this.#scheduler.waitIdle();
    await this.#land();
  }

  /** Lets time pass until every call has settled. What a dead process or a lost release leaves locked, the lease ends. */
  async #land(): Promise<void> {
    for (let waited = 0; waited < 60_000 && this.#isUnderWay; waited += 250) await this.#pass(250);
    // What has no reply yet gets none within its deadline, and is released.
    await this.#pass(600);
    this.history.finish(
      this.#locksLeft.filter((token) => !this.#processes.some(({ store }) => store.leavesLocked(token))),
    );
    if (this.#locksLeft.length === 0) return;
    await this.#pass(6_000);
    this.history.finish(this.#locksLeft);
  }

  get #locksLeft(): string[] {
    return [...this.#keys].flatMap((key) => this.#server.locks.get(`cache ${key}`)?.token ?? []);
  }

  get #isUnderWay(): boolean {
    const { calls, loads, writes, crashed } = this.history;
    return (
      writes.some((write) => write.resolvedAt === undefined && !write.rejected && !crashed.has(write.process)) ||
      calls.some((call) => call.settledAt === undefined && !crashed.has(call.process)) ||
      loads.some((load) => load.endedAt === undefined && !crashed.has(load.process))
    );
  }

  async #pass(milliseconds: number): Promise<void> {
    this.history.step(`${milliseconds} ms pass`);
    await this.#clock.advance(milliseconds);
    await this.#scheduler.waitIdle();
  }

  async #act(action: Action): Promise<void> {
    const process = this.#processes[action.process % this.#processes.length]!;
    if (process.store.crashed) return;
    switch (action.type) {
      case 'call':
        this.#call(process, action);
        break;
      case 'crowd':
        for (const each of this.#processes) {
          if (each.store.crashed) continue;
          // Twice, in one tick: calls alike may be one caller.
          this.#call(each, action);
          this.#call(each, action);
        }
        break;
      case 'many':
        this.#callMany(process, action);
        break;
      case 'get':
        this.#get(process, action.key);
        break;
      case 'evict':
      case 'expire':
      case 'set':
        this.#write(process, action.type, action.key);
        break;
      case 'slow':
        process.store.slow.push(action.slow);
        break;
      case 'fault':
        process.store.faults.push(action.fault);
        break;
      case 'lose wake-ups':
        process.store.wakeUpsToLose += 1;
        break;
      case 'resubscribe':
        process.store.resubscribe();
        break;
      case 'crash':
        this.history.step(`${process.index}: crashes`);
        this.history.crashed.add(process.index);
        process.store.crashed = true;
        break;
      case 'rest':
        return;
      case 'pass':
        this.history.step(`${action.milliseconds} ms pass`);
        await this.#clock.advance(action.milliseconds);
    }
    await settle();
  }

  #call(process: Process, action: Omit<CallAction, 'type'>): void {
    const { key, wait, leaves, abortWhenUnused } = action;
    const leaving = new AbortController();
    const options = { ...optionsOf(action), abortWhenUnused, ...(leaves && { signal: leaving.signal }) };
    const call = this.#begin(process, `calls ${key}`, key, wait === 'long');
    const answer = leaves
      ? process.cache.getOrLoad(key, this.#loader(process, action), options)
      : process.cache.getOrLoadResolved(key, this.#loader(process, action), this.#resolvedOnce(process, options));
    call.near = process.nearHits.delete(key);
    this.#settle(call, answer);
    if (leaves) this.#leave(call, leaving);
  }

  /** Of options that are equal, the very same: so are those of a decorator, or of a `ttl`. */
  #resolvedOnce({ index, cache }: Process, options: LoadOptions<Origin>): ResolvedLoadOptions {
    const name = `${index} ${JSON.stringify(options)} ${options.cacheIf}`;
    const resolved = this.#resolved.get(name) ?? cache.resolve(options);
    this.#resolved.set(name, resolved);
    return resolved;
  }

  /** Who leaves one of many can't end the load of that one alone, so this has no `abortWhenUnused`. */
  #callMany(process: Process, action: Omit<CallAction, 'type'>): void {
    const leaving = new AbortController();
    const keys = action.key === 'a' ? ['a', 'b'] : ['b', 'a'];
    const calls = keys.map((key) => this.#begin(process, `calls ${key}, as one of many`, key, action.wait === 'long'));
    const options = { ...optionsOf(action), signal: leaving.signal, errors: 'return' } as const;
    const answers = process.cache.getOrLoadMany(keys, this.#manyLoader(process, action), options);
    for (const [i, call] of calls.entries()) {
      call.near = process.nearHits.delete(call.key);
      const answer = answers.then((found) => {
        const each = found[i];
        if (each instanceof Error) throw each;
        return each;
      });
      this.#settle(call, answer);
    }
    if (action.leaves) this.#leave(calls[0]!, leaving);
  }

  #leave(call: CallRecord, leaving: AbortController): void {
    void this.#soon(`the caller of ${call.startedAt} leaves`).then(() => leaving.abort(new Error('left')));
  }

  #get(process: Process, key: string): void {
    const call = this.#begin(process, `gets ${key}`, key, true);
    this.#settle(call, process.cache.get<Origin>(key));
  }

  #begin({ index }: Process, what: string, key: string, patient: boolean): CallRecord {
    this.#keys.add(key);
    const startedAt = this.history.step(`${index}: ${what}`);
    const startedTime = this.#clock.now();
    const call: CallRecord = {
      process: index,
      key,
      startedAt,
      startedTime,
      near: false,
      patient,
      settledAt: undefined,
    };
    this.history.calls.push(call);
    return call;
  }

  #settle(call: CallRecord, answer: Promise<Origin | undefined>): void {
    const settled = (what: string, origin: Origin | undefined) => {
      call.settledAt = this.history.step(`${call.process}: the call of ${call.startedAt} gets ${what}`);
      if (origin) this.history.answered(call, origin);
    };
    answer.then(
      (origin) => settled(`${JSON.stringify(origin)}`, origin),
      (error: Error) => {
        // A loader's error tells whose it is, also when it comes from another process.
        settled(error.message, /^{"load":\d+}$/.test(error.message) ? JSON.parse(error.message) : undefined);
        if (error instanceof CacheWaitTimeoutError) this.history.gaveUp(call);
      },
    );
  }

  #loader(
    process: Process,
    { key, is, ticks }: Omit<CallAction, 'type'>,
  ): (context: { signal: AbortSignal }) => Promise<Origin> {
    return async ({ signal }) => {
      const load = this.#beginLoad(process, key);
      const end = (how: string) => {
        load.endedAt ??= this.history.step(`${process.index}: load ${load.id} ${how}`);
      };
      signal.addEventListener('abort', () => end('is aborted'));
      for (let tick = 0; tick < ticks; tick++) await this.#soon(`load ${load.id} goes on`);
      end('ends');
      if (is === 'throws') throw new Error(JSON.stringify({ load: load.id }));
      return { load: load.id };
    };
  }

  #manyLoader(
    process: Process,
    { key: first, is, ticks }: Omit<CallAction, 'type'>,
  ): (keys: readonly string[], context: { signal: AbortSignal }) => Promise<(Origin | Error)[]> {
    return async (keys, { signal }) => {
      const loads = keys.map((key) => this.#beginLoad(process, key));
      const end = (how: string) => {
        for (const load of loads) load.endedAt ??= this.history.step(`${process.index}: load ${load.id} ${how}`);
      };
      signal.addEventListener('abort', () => end('is aborted'));
      for (let tick = 0; tick < ticks; tick++) await this.#soon(`loads ${loads.map(({ id }) => id)} go on`);
      end('ends');
      return loads.map(({ id, key }) =>
        is === 'throws' && key === first ? new Error(JSON.stringify({ load: id })) : { load: id },
      );
    };
  }

  #starts({ store, starting }: Process, { key, alone }: { key: string; alone: boolean }): void {
    const lock = alone ? undefined : this.history.locks.get(store.led.get(key) ?? '');
    starting.set(key, [...(starting.get(key) ?? []), { alone, lock }]);
  }

  #beginLoad({ index, starting }: Process, key: string): LoadRecord {
    const { alone, lock } = starting.get(key)?.pop() ?? { alone: true, lock: undefined };
    const storeWasAway = this.history.wasTroubled(index);
    return this.history.begin({ key, process: index, alone, storeWasAway, lock });
  }

  #write({ cache, index }: Process, type: WriteRecord['type'], key: string): void {
    this.#keys.add(key);
    const id = this.history.writes.length + 1;
    const calledAt = this.history.step(`${index}: ${type} ${id} of ${key}`);
    const write: WriteRecord = { type, id, process: index, key, calledAt, resolvedAt: undefined, rejected: false };
    this.history.writes.push(write);
    const done = type === 'set' ? cache.set(key, { set: id }, '1h') : cache[type](key);
    done.then(
      () => {
        write.resolvedAt = this.history.step(`${index}: ${type} ${id} resolves`);
      },
      () => {
        write.rejected = true;
        this.history.step(`${index}: ${type} ${id} rejects`);
      },
    );
  }

  #soon(label: string): Promise<void> {
    return this.#scheduler.schedule(Promise.resolve(), label);
  }
}

function optionsOf({ is, wait }: Omit<CallAction, 'type'>): LoadOptions<Origin> {
  return {
    ttl: is === 'ttl 0' ? 0 : is === 'short' ? 500 : '1h',
    ...(is === 'refused' && { cacheIf: () => false }),
    ...(wait !== 'long' && { wait: 300, onWaitTimeout: wait }),
  };
}

/** Two moments are never the same, as on a real clock. */
function ticking(clock: TestClock): Clock {
  let ticks = 0;
  const now = () => {
    ticks += 1e-6;
    return clock.now() + ticks;
  };
  return { now, after: (delay, run) => clock.after(delay, run) };
}
