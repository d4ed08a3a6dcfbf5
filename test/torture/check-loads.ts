/** Invariant 1: one load. */

import type { Finding } from './check.js';
import { seconds } from './check.js';
import type { Excuses } from './excuses.js';
import type { Call, History, Load, Write } from './history.js';

/** From the moment in which the lock was taken until the loader begins, at most: a reply may be slow. */
const LED_BEFORE = 1_000;
/** A loader that waits for its turn, or a timer, may be late by so much. */
const SLACK = 50;
/** So long a load takes at least, while a process runs, for its callers who wait to be registered with it. */
const REGISTERED = 500;

export function checkLoads(history: History, excuses: Excuses): Finding[] {
  const findings: Finding[] = [];
  const byKey = groupBy(history.loads, ({ key }) => key);
  const writes = groupBy(history.writes, ({ key }) => key);
  const calls = groupBy(history.calls, ({ key }) => key);
  for (const [key, all] of byKey) {
    const check = new KeyCheck(history, excuses, all, writes.get(key) ?? []);
    findings.push(
      ...check.overlaps(),
      ...check.needless(),
      ...check.afterSet(),
      ...check.unshared(calls.get(key) ?? []),
    );
  }
  return findings;
}

class KeyCheck {
  readonly #loads: readonly Load[];

  constructor(
    readonly history: History,
    readonly excuses: Excuses,
    loads: readonly Load[],
    readonly writes: readonly Write[],
  ) {
    this.#loads = loads.filter((load) => !this.isLastResort(load)).sort((a, b) => a.from - b.from);
  }

  /** Two at once. */
  overlaps(): Finding[] {
    const findings: Finding[] = [];
    this.#pairs((first, second) => {
      if (second.from >= this.excuses.endOfLoad(first)) return false;
      if (!this.#isExcused(first, second)) {
        const until = this.excuses.endOfLoad(first);
        findings.push({
          check: 'one load',
          at: second.from,
          what: `'${first.key}': ${first.id} began at ${seconds(this.history, first.from)} and ended at ${seconds(this.history, until)}; ${second.id} began meanwhile`,
        });
      }
      return true;
    });
    return findings;
  }

  /** One after the other, though what the first made had been stored and was fresh. */
  needless(): Finding[] {
    const findings: Finding[] = [];
    this.#loads.forEach((first, i) => {
      const second = this.#loads[i + 1];
      if (!second || first.came !== 'value' || first.abortedAt !== undefined) return;
      const { ttl, refuse, variants } = this.#profile(first);
      const end = this.excuses.endOfLoad(first);
      if (refuse || second.from < end || second.from >= end + ttl - SLACK) return;
      if (variants[second.variant]?.earlyRefresh) return;
      const wasOverlapped = this.#loads.some(
        (other) => other !== first && other.from < end && this.excuses.endOfLoad(other) > first.from,
      );
      // Loaded without the lock, or not stored for want of Redis.
      const wasAlone = this.excuses.cutOff(first.process, first.from - LED_BEFORE, end + this.history.commandTimeout);
      if (wasOverlapped || wasAlone || this.#isExcused(first, second)) return;
      findings.push({
        check: 'needless load',
        at: second.from,
        what: `'${first.key}': ${first.id} ended at ${seconds(this.history, end)} and is fresh for ${ttl} ms; ${second.id} began all the same`,
      });
    });
    return findings;
  }

  /** After a `set` that was acknowledged, and that nobody else's write came across. */
  afterSet(): Finding[] {
    const findings: Finding[] = [];
    for (const set of this.writes) {
      if (set.by !== 'set' || !set.acknowledged || set.until === undefined) continue;
      const { until } = set;
      // Who asked before may have led before.
      const second = this.#loads.find(({ callFrom }) => callFrom > until);
      if (!second || second.from >= until + this.#profile(second).ttl - SLACK) continue;
      const others = this.writes.filter((write) => write !== set);
      const isCrossed = others.some(
        (write) => write.from <= second.from && this.excuses.effectOf(write) >= set.from - LED_BEFORE,
      );
      if (isCrossed || this.#mayBeAlone(second) || this.excuses.lostLocks(set.from - LED_BEFORE, second.from)) continue;
      findings.push({
        check: 'needless load',
        at: second.from,
        what: `'${set.key}': ${set.id} was set at ${seconds(this.history, until)}, and ${second.id} began all the same`,
      });
    }
    return findings;
  }

  /** Who waited for a load that isn't stored, from before it began, gets what it came to. */
  unshared(calls: readonly Call[]): Finding[] {
    const findings: Finding[] = [];
    const byId = new Map(this.#loads.map((load) => [load.id, load]));
    for (const call of calls) {
      const got = call.got ? byId.get(call.got) : undefined;
      if (!got) continue;
      const missed = this.#loads.find((load) => {
        const end = this.excuses.endOfLoad(load);
        if (load === got || load.from <= call.from || end > got.from) return false;
        return end - load.from - this.excuses.stoodStill(call.process, load.from, end) > REGISTERED;
      });
      if (missed?.came !== 'value' || missed.abortedAt !== undefined || !this.#profile(missed).refuse) continue;
      if (this.#isExcused(missed, got) || this.excuses.cutOff(call.process, call.from, got.from)) continue;
      // Without Redis an outcome can't be told; what is made up for later is the release alone.
      const ended = this.excuses.endOfLoad(missed);
      if (this.excuses.cutOff(missed.process, ended, ended + this.history.commandTimeout)) continue;
      findings.push({
        check: 'outcome shared',
        at: call.until ?? call.from,
        what: `'${call.key}': a call of ${call.process} that waited since ${seconds(this.history, call.from)} did not get what ${missed.id} came to, but ${got.id}`,
      });
    }
    return findings;
  }

  /** `check` answers whether it is of use to look at those that began still later. */
  #pairs(check: (first: Load, second: Load) => boolean): void {
    this.#loads.forEach((first, i) => {
      for (const second of this.#loads.slice(i + 1)) if (!check(first, second)) break;
    });
  }

  #profile({ profile }: Load) {
    return this.history.profiles.find(({ name }) => name === profile)!;
  }

  /** Under `onWaitTimeout: 'load'` a caller loads by itself when its wait is over. */
  isLastResort(load: Load): boolean {
    const { options } = this.#profile(load);
    return options.onWaitTimeout === 'load' && load.from >= load.callFrom + options.wait - SLACK;
  }

  /** Whether the lease of the first may have been lost before the second began, or the second had none. */
  #isExcused(first: Load, second: Load): boolean {
    const { excuses } = this;
    const led = first.from - LED_BEFORE;
    const { lease } = this.#profile(first).options;
    return (
      this.writes.some((write) => write.from <= second.from && excuses.effectOf(write) >= led) ||
      this.#mayBeAlone(first) ||
      this.#mayBeAlone(second) ||
      // Renewed every third of it, so that no less than two thirds were left.
      excuses.cutOff(first.process, led, second.from, lease / 2) ||
      // A busy machine renews late.
      excuses.stoodStill(first.process, second.from - lease - 200, second.from) > lease / 4 ||
      excuses.lostLocks(led, second.from)
    );
  }

  /** Without Redis a process loads without a lock. */
  #mayBeAlone({ process, from }: Load): boolean {
    return this.excuses.cutOff(process, from - this.history.commandTimeout - SLACK, from);
  }
}

export function groupBy<T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(key(item));
    if (group) group.push(item);
    else groups.set(key(item), [item]);
  }
  return groups;
}
