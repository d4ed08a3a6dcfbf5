/**
 * What happened in one run, in steps, and what must not: each broken invariant is noted in `violations`.
 *
 * It knows nothing of how the cache works, only when commands ran in the store, when loaders began and ended, and when calls
 * and evictions started and settled.
 */
import type { StoreCommand } from '../../lib/core/events.js';

/** A lock that a lead command, or the claim of a `set`, took. */
export interface LockRecord {
  readonly token: string;
  /** The step in which it was taken. */
  readonly takenAt: number;
  /** When it was taken, on the store's clock. */
  readonly takenTime: number;
  /** When its lease ends, on the store's clock. */
  until: number;
}

export interface LoadRecord {
  readonly id: number;
  readonly key: string;
  readonly process: number;
  readonly beganAt: number;
  /** It ran without a lock: the store was away, or a wait timed out under `'load'`. */
  readonly alone: boolean;
  /** The store had been in trouble, as seen from its process, when it began. */
  readonly storeWasAway: boolean;
  readonly lock: LockRecord | undefined;
  endedAt: number | undefined;
}

/** An `evict`, `expire` or `set`. */
export interface WriteRecord {
  readonly type: 'evict' | 'expire' | 'set';
  readonly id: number;
  readonly process: number;
  readonly key: string;
  readonly calledAt: number;
  resolvedAt: number | undefined;
  rejected: boolean;
}

/** A `getOrLoad` or `get`. */
export interface CallRecord {
  readonly process: number;
  readonly key: string;
  readonly startedAt: number;
  /** When it started, on the store's clock. */
  readonly startedTime: number;
  /** It was answered by the near cache, as it started. */
  near: boolean;
  /** It waits longer than a run takes, unless something goes wrong. */
  readonly patient: boolean;
  settledAt: number | undefined;
}

/** A message to one process that a key was changed. */
export interface ChangeRecord {
  readonly process: number;
  readonly key: string;
  readonly publishedAt: number;
  toldAt: number | undefined;
}

/** Where an answer came from. */
export type Origin = { readonly load: number } | { readonly set: number };

export class History {
  readonly log: string[] = [];
  readonly violations: string[] = [];
  readonly loads: LoadRecord[] = [];
  readonly writes: WriteRecord[] = [];
  readonly calls: CallRecord[] = [];
  readonly changes: ChangeRecord[] = [];
  /** Every lock there was, by its token. */
  readonly locks = new Map<string, LockRecord>();
  readonly crashed = new Set<number>();
  /** What ended leases: the steps in which an `evict`, `expire` or claim ran, by key, with the token of the claim. */
  readonly #replaced: { readonly key: string; readonly at: number; readonly token: string | undefined }[] = [];
  /** The last step in which a command of this kind had failed a process. */
  readonly #troubles = new Map<string, number>();
  /** What is stored, as far as nothing has replaced it. */
  readonly #entries = new Map<string, { readonly at: number; readonly until: number }>();
  /** Until when what was stored is fresh, on the store's clock, by its origin. */
  readonly #freshUntil = new Map<string, number>();
  #step = 0;

  /** A new step. */
  step(what: string): number {
    this.#step += 1;
    this.log.push(`${this.#step} ${what}`);
    return this.#step;
  }

  troubled(process: number, command: StoreCommand): void {
    this.#troubles.set(`${process}`, this.step(`${process}: ${command} failed`));
    this.#troubles.set(`${process} ${command}`, this.#step);
  }

  wasTroubled(process: number, command?: StoreCommand, since = 0): boolean {
    return (this.#troubles.get(command ? `${process} ${command}` : `${process}`) ?? -1) >= since;
  }

  took(token: string, now: number, lease: number): void {
    const lock = this.locks.get(token);
    if (lock) lock.until = now + lease;
    else this.locks.set(token, { token, takenAt: this.#step, takenTime: now, until: now + lease });
  }

  replaced(key: string, token: string | undefined): void {
    this.#entries.delete(key);
    this.#replaced.push({ key, at: this.#step, token });
  }

  /** A change that a process is to be told of has been made in this step. */
  published(process: number, key: string): ChangeRecord {
    const change: ChangeRecord = { process, key, publishedAt: this.#step, toldAt: undefined };
    this.changes.push(change);
    return change;
  }

  /** Invariant 1: two loads under a lock overlap only if the first one's lease had ended when the second took the lock. */
  begin(load: Omit<LoadRecord, 'id' | 'beganAt' | 'endedAt'>): LoadRecord {
    const id = this.loads.length + 1;
    const beganAt = this.step(`${load.process}: load ${id} of ${load.key} begins${load.alone ? ' alone' : ''}`);
    const begun: LoadRecord = { ...load, id, beganAt, endedAt: undefined };
    for (const other of this.loads) {
      if (other.key !== load.key || other.endedAt !== undefined || this.crashed.has(other.process)) continue;
      if (other.alone !== load.alone) continue;
      if (load.alone) {
        if (other.process === load.process && !load.storeWasAway)
          this.#violated(1, `loads ${other.id} and ${id} ran alone`);
      } else if (!this.#leaseEnded(load.key, other.lock, load.lock)) {
        this.#violated(1, `loads ${other.id} and ${id} overlap, and no lease had ended`);
      }
    }
    const entry = this.#entries.get(load.key);
    if (load.lock && entry && entry.at < load.lock.takenAt && entry.until > load.lock.takenTime) {
      this.#violated(1, `load ${id} begins, though a value is stored since ${entry.at}`);
    }
    this.loads.push(begun);
    return begun;
  }

  /** Whether the lease of the one that had the lock before had ended when the other took it. */
  #leaseEnded(key: string, one: LockRecord | undefined, other: LockRecord | undefined): boolean {
    if (!one || !other) return false;
    const [first, second] = one.takenAt < other.takenAt ? [one, other] : [other, one];
    return (
      first.until <= second.takenTime ||
      this.#replaced.some((by) => by.key === key && by.at > first.takenAt && by.at <= second.takenAt)
    );
  }

  /** Invariant 2: what is stored was not loaded, or claimed, before something that came after it. */
  stored(key: string, token: string, origin: Origin, until: number): void {
    this.#entries.set(key, { at: this.#step, until });
    this.#freshUntil.set(JSON.stringify(origin), until);
    const load = 'load' in origin ? this.loads[origin.load - 1] : undefined;
    const since = load ? load.beganAt : (this.locks.get(token)?.takenAt ?? this.#step);
    const later = this.#replaced.find((by) => by.key === key && by.at > since && by.token !== token);
    if (later) this.#violated(2, `${JSON.stringify(origin)} was stored at ${this.#step} over what came at ${later.at}`);
  }

  /**
   * Invariant 3: nobody gets a value that was there before an `evict`, `expire` or `set` that had resolved when the call started;
   * but from the near cache of another process until that is told. And nobody gets one from there that is no longer fresh.
   */
  answered(call: CallRecord, origin: Origin): void {
    const load = 'load' in origin ? this.loads[origin.load - 1] : undefined;
    const set = 'set' in origin ? this.writes.find(({ id }) => id === origin.set) : undefined;
    if ((load ?? set)?.key !== call.key) this.#violated(0, `the call at ${call.startedAt} got another key's value`);
    if (call.near && call.startedTime >= (this.#freshUntil.get(JSON.stringify(origin)) ?? -Infinity)) {
      this.#violated(3, `the call at ${call.startedAt} got ${JSON.stringify(origin)}, which isn't fresh, from near`);
    }
    // A set that races an eviction may come after it.
    const madeAt = load ? load.beganAt : (set?.resolvedAt ?? Infinity);
    for (const { type, key, process, calledAt, resolvedAt } of this.writes) {
      if (key !== call.key || resolvedAt === undefined || resolvedAt > call.startedAt) continue;
      const isCutOff = load && process !== load.process && this.#wasCutOff(load, call);
      const isUntold = call.near && process !== call.process && this.#isUntold(call, resolvedAt);
      const excused = isCutOff || isUntold;
      if (madeAt < calledAt && !excused) {
        const what = `${JSON.stringify(origin)}, made at ${madeAt}`;
        this.#violated(3, `the call at ${call.startedAt} got ${what}, in spite of the ${type} at ${calledAt}`);
      }
    }
  }

  /** The documented exception of near caches: a message is on its way. */
  #isUntold(call: CallRecord, resolvedAt: number): boolean {
    return this.changes.some(
      ({ process, key, publishedAt, toldAt = Infinity }) =>
        process === call.process && key === call.key && publishedAt <= resolvedAt && toldAt > call.startedAt,
    );
  }

  /** The documented exception: a process that is cut off answers with the load that it runs, if the eviction was another's. */
  #wasCutOff(load: LoadRecord, call: CallRecord): boolean {
    if (load.process !== call.process) return false;
    return (load.alone && load.storeWasAway) || this.wasTroubled(load.process, 'end', load.beganAt);
  }

  /** A wait is over: for who is patient only when something went wrong. */
  gaveUp(call: CallRecord): void {
    if (call.patient && this.#troubles.size === 0 && this.crashed.size === 0) {
      this.#violated(5, `the call at ${call.startedAt} waited for nothing`);
    }
  }

  /** No call hangs, and (invariant 4) no lock outlives its attempt. */
  finish(tokensLeft: readonly string[]): void {
    for (const call of this.calls) {
      if (call.settledAt === undefined && !this.crashed.has(call.process)) {
        this.#violated(5, `the call at ${call.startedAt} never settled`);
      }
    }
    for (const token of tokensLeft) this.#violated(4, `the lock of ${token} is left`);
  }

  #violated(invariant: number, what: string): void {
    this.violations.push(`invariant ${invariant}: ${what}`);
    this.log.push(`!!! invariant ${invariant}: ${what}`);
  }
}
