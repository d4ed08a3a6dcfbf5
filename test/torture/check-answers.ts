/** Invariants 3, 5 and 6: eviction wins, no call hangs, errors are the loader's own. */
import { type Finding, seconds } from './check.js';
import { groupBy } from './check-loads.js';
import type { Excuses } from './excuses.js';
import type { Call, History, Load, Write } from './history.js';
import type { LoadProfile } from './workload.js';

/** What a busy machine may add, beside what was measured. */
const SLACK = 700;
/** Values that were loaded while Redis was away are kept so long, at most. */
const MOST_KEPT = 1_000;
const KEPT_SLACK = 150;
/** The promise: a call is answered one `commandTimeout` and this after its loader's time, at most, when Redis is away. */
const WITHOUT_REDIS = 100;

/** Beyond the lease: a poll, a lead, and a busy machine. */
const WITHOUT_LOAD = 1_700;

/** So long a value is there for all who look now and then; and so long before the end of their wait. */
const LONG_ENOUGH = 500;
const FOUND = 2_000;

/** What a call got: a load, or a `set`, and from when to when that was. */
interface Origin {
  readonly id: string;
  readonly process: string;
  readonly from: number;
  readonly until: number;
  /** From when on what it wrote has a claim to be the newest: a load's from its beginning. */
  readonly newestAt: number;
}

export function checkAnswers(history: History, excuses: Excuses): Finding[] {
  return [...new Answers(history, excuses).findings()];
}

class Answers {
  readonly #origins = new Map<string, Origin>();
  readonly #failed = new Map<string, Load>();
  /** The calls whose loaders ran. */
  readonly #owners = new Set<string>();
  readonly #writes: Map<string, Write[]>;
  readonly #loads: Map<string, Load[]>;
  readonly #profiles: Map<string, LoadProfile>;

  constructor(
    readonly history: History,
    readonly excuses: Excuses,
  ) {
    for (const load of history.loads) {
      const { id, process, from } = load;
      const until = excuses.endOfLoad(load);
      this.#origins.set(id, { id, process, from, until, newestAt: from });
      this.#owners.add(ownerOf(process, load.key, load.callFrom));
      if (load.came === 'error') this.#failed.set(id, load);
    }
    for (const { id, process, from, until, by } of history.writes) {
      if (by !== 'set') continue;
      const end = until ?? excuses.endOf(process);
      this.#origins.set(id, { id, process, from, until: end, newestAt: end });
    }
    this.#loads = groupBy(
      [...history.loads].sort((a, b) => a.from - b.from),
      ({ key }) => key,
    );
    this.#writes = groupBy(history.writes, ({ key }) => key);
    this.#profiles = new Map(history.profiles.map((profile) => [profile.name, profile]));
  }

  *findings(): Iterable<Finding> {
    for (const call of this.history.calls) {
      yield* this.#isAnswered(call);
      if (call.until === undefined) continue;
      if (call.error) yield* this.#mayFail(call, call.error);
      else yield* this.#isNew(call);
    }
    for (const write of this.history.writes) yield* this.#isWritten(write);
  }

  *#isAnswered(call: Call): Iterable<Finding> {
    const { process, from, key } = call;
    const profile = this.#profiles.get(call.profile)!;
    const { wait, maxLoad } = profile.options;
    const { commandTimeout } = this.history;
    const until = call.until ?? this.history.until;
    const stood = this.excuses.stoodStill(process, from, until);
    // It waits for another, then loads, and each step before, between and after may take its time.
    let bound = wait + maxLoad + 4 * commandTimeout;
    let promise = 'wait + maxLoad + 4 × commandTimeout';
    if (profile.options.onWaitTimeout !== 'load' && !this.#owners.has(ownerOf(call.process, key, from))) {
      bound = wait + 2 * commandTimeout;
      promise = 'wait + 2 × commandTimeout, for one whose loader does not run';
    }
    if (profile.lone && this.#isRedisAway(process, from)) {
      bound = profile.takes[1] + commandTimeout + WITHOUT_REDIS;
      promise = "the loader's time + commandTimeout + 100 ms, while Redis is away";
    }
    if (call.until !== undefined && until - from - stood <= bound + SLACK) return;
    const what =
      call.until === undefined
        ? `'${key}': a call of ${process}, made at ${seconds(this.history, from)}, was never answered`
        : `'${key}': a call of ${process} was answered after ${Math.round(until - from)} ms, of which the process stood still for ${Math.round(stood)} ms; the bound is ${promise}`;
    yield { check: 'answered', at: from, what };
  }

  /** From before the call until long after it had to be answered. */
  #isRedisAway(process: string, from: number): boolean {
    return this.history.faults.some(
      (fault) =>
        (fault.is === 'redis away' || (fault.is === 'blackhole' && fault.process === process)) &&
        !fault.lost?.includes('writes') &&
        fault.from < from &&
        fault.until > from + this.history.commandTimeout + WITHOUT_REDIS,
    );
  }

  *#mayFail(call: Call, { name, code, message }: NonNullable<Call['error']>): Iterable<Finding> {
    const profile = this.#profiles.get(call.profile)!;
    const waited = (call.until ?? 0) - call.from;
    if (code === 'E_PLANNED' && this.#failed.has(message)) return;
    if (
      code === 'LOAD_TIMEOUT' &&
      (profile.deaf !== undefined || this.excuses.wasStopped(call.process, call.from, call.until ?? 0))
    )
      return;
    if (code === 'E_GIVEN_UP' && profile.givesUp) return;
    if (
      code === 'CACHE_WAIT_TIMEOUT' &&
      profile.options.onWaitTimeout !== 'load' &&
      waited >= profile.options.wait - 5
    ) {
      yield* this.#waitedForSomebody(call, profile);
      yield* this.#missedNothing(call, profile);
      return;
    }
    // A load of a process that leaves is given up, when it has waited long enough.
    if (code === 'CACHE_CLOSED' && this.excuses.lifeOf(call.process)?.end === 'left') return;
    yield {
      check: 'errors',
      at: call.until ?? call.from,
      what: `'${call.key}': a call of ${call.process} got ${name} (${code}): ${message}`,
    };
  }

  /** When nobody loads, the lease of who did is over soon; then somebody else does. */
  *#waitedForSomebody(call: Call, { options }: LoadProfile): Iterable<Finding> {
    const longest = options.lease + WITHOUT_LOAD;
    let since = call.from;
    for (const load of this.#loads.get(call.key) ?? []) {
      if (load.from - since > longest) break;
      since = Math.max(since, this.excuses.endOfLoad(load));
    }
    const until = Math.min(call.until!, since + longest);
    if (call.until! - since <= longest || this.excuses.cutOff(call.process, since, until)) return;
    yield {
      check: 'waits for nobody',
      at: call.until!,
      what: `'${call.key}': a call of ${call.process} waited in vain, though nobody loaded since ${seconds(this.history, since)}`,
    };
  }

  /** Who waits finds what others load and store meanwhile. */
  *#missedNothing(call: Call, profile: LoadProfile): Iterable<Finding> {
    const until = call.until! - FOUND;
    if (profile.refuse || profile.ttl < LONG_ENOUGH || this.#writes.has(call.key)) return;
    const { excuses, history } = this;
    if (excuses.cutOff(call.process, call.from, call.until!)) return;
    const missed = this.#loads.get(call.key)?.find((load) => {
      const end = excuses.endOfLoad(load);
      return (
        load.from > call.from &&
        end < until &&
        load.came === 'value' &&
        load.abortedAt === undefined &&
        !excuses.cutOff(load.process, load.from, end + history.commandTimeout) &&
        !excuses.wasStopped(load.process, load.from, end) &&
        !excuses.lostLocks(load.from - history.commandTimeout, end)
      );
    });
    if (!missed) return;
    yield {
      check: 'waits for nobody',
      at: call.until!,
      what: `'${call.key}': a call of ${call.process} waited in vain since ${seconds(history, call.from)}, though ${missed.id} was loaded meanwhile, from ${seconds(history, missed.from)} to ${seconds(history, excuses.endOfLoad(missed))}`,
    };
  }

  /** No older than its `ttl` and this call's windows, from when it was stored. */
  *#isFresh(call: Call, got: Origin, profile: LoadProfile): Iterable<Finding> {
    const { staleWhileRevalidate = 0, staleIfError = 0 } = profile.variants[call.variant] ?? {};
    const allowed = profile.ttl + Math.max(Number(staleWhileRevalidate), Number(staleIfError));
    const storing = this.history.commandTimeout + 100 + this.excuses.stoodStill(got.process, got.until, call.from);
    const age = call.from - got.until;
    if (profile.refuse || age <= allowed + storing || this.#isOwnAnswer(call, got)) return;
    // What is on its way when the way is closed is stored when it is open again, as long as the lease lasts.
    if (this.excuses.cutOff(got.process, got.until, got.until + this.history.commandTimeout)) return;
    yield {
      check: 'freshness',
      at: call.from,
      what: `'${call.key}': ${call.process} got ${got.id}, ${Math.round(age)} ms after that was loaded; ${allowed} are allowed`,
    };
  }

  *#isNew(call: Call): Iterable<Finding> {
    const got = call.got === undefined ? undefined : this.#origins.get(call.got);
    if (!got || this.#failed.has(got.id)) {
      yield {
        check: 'errors',
        at: call.until!,
        what: `'${call.key}': a call of ${call.process} got ${call.got}, which no loader gave`,
      };
      return;
    }
    const profile = this.#profiles.get(call.profile)!;
    yield* this.#isFresh(call, got, profile);
    const { staleWhileRevalidate, staleIfError } = profile.variants[call.variant] ?? {};
    const mayBeStale = Boolean(staleWhileRevalidate || staleIfError);
    for (const write of this.#writes.get(call.key) ?? []) {
      if (write.until === undefined || write.until >= call.from || write.from <= got.newestAt) continue;
      if (write.by === 'expire' && mayBeStale) continue;
      if (write.acknowledged ? this.#isExcused(call, got, write) : !this.#isPromised(call, got, write)) continue;
      const end = write.acknowledged ? 'acknowledged' : 'refused, and to be made up for,';
      yield {
        check: 'eviction wins',
        at: call.from,
        what:
          `'${call.key}': ${call.process} asked at ${seconds(this.history, call.from)} and got ${got.id}, begun at ${seconds(this.history, got.from)}; ` +
          `but ${write.by} ${write.id}, called at ${seconds(this.history, write.from)}, was ${end} at ${seconds(this.history, write.until)}`,
      };
      return;
    }
  }

  /** The exceptions that are documented: a failover that loses it; a process that is cut off, for what it has loaded itself. */
  #isExcused(call: Call, got: Origin, write: Write): boolean {
    if (this.excuses.mayBeLost(write.until!)) return true;
    return got.process === call.process && this.#isOwnAnswer(call, got);
  }

  /** Its running load, or a value that it keeps for a second. */
  #isOwnAnswer(call: Call, got: Origin): boolean {
    const since = call.from - MOST_KEPT - KEPT_SLACK - this.excuses.stoodStill(call.process, got.until, call.until!);
    return got.until >= since && this.excuses.cutOff(call.process, Math.max(got.from, since), call.until!);
  }

  /** An eviction that did not reach Redis: until it is made up for, this process answers nothing that was stored before. */
  #isPromised(call: Call, got: Origin, { process, by, from }: Write): boolean {
    if (by !== 'evict' || process !== call.process || this.#hasLeft(call)) return false;
    const wasRunning = got.process === process && got.until > from;
    return !(wasRunning && this.#isOwnAnswer(call, got));
  }

  #hasLeft({ process, until }: Call): boolean {
    const life = this.excuses.lifeOf(process);
    return life?.end === 'left' && (until ?? 0) > life.until - 5_000;
  }

  *#isWritten(write: Write): Iterable<Finding> {
    const { process, from, until, acknowledged, by, key, error } = write;
    if (until === undefined) return;
    const stood = this.excuses.stoodStill(process, from, until);
    // A `set` has three steps at most.
    const bound = (by === 'set' ? 3 : 1) * (this.history.commandTimeout + 100) + SLACK;
    if (until - from - stood > bound) {
      yield {
        check: 'answered',
        at: from,
        what: `${by} of '${key}' by ${process} took ${Math.round(until - from)} ms`,
      };
    }
    if (acknowledged || this.excuses.cutOff(process, from, until)) return;
    yield {
      check: 'errors',
      at: until,
      what: `${by} of '${key}' by ${process} failed though Redis was there: ${error}`,
    };
  }
}

function ownerOf(process: string, key: string, callFrom: number): string {
  return `${process} ${key} ${callFrom}`;
}
