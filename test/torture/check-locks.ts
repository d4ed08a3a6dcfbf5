/** Invariant 4, and the lock service: one holder, growing fencing tokens, nothing locked for nobody. */
import { type Finding, seconds } from './check.js';
import { groupBy } from './check-loads.js';
import { type Excuses, RECOVERY } from './excuses.js';
import type { History, Hold, ProcessLife, Sighting } from './history.js';
import { keysOf, type LockProfile } from './workload.js';

/** Between what a process does and what it writes down, and between a reply and its coming. */
const SLACK = 300;
/** By how much a timer may be late that tells of a lease's end, without a stall being noticed. */
const LATE = 150;
/** A poll comes within half a second. */
const FREE = 1_500;
/** The client gives up a connection that was silent for 3 s, and then an acquire may be left behind in the server's buffer. */
const LEFT_BEHIND = 2_800;

export function checkLocks(history: History, excuses: Excuses): Finding[] {
  const findings: Finding[] = [];
  for (const holds of groupBy(history.holds, ({ key }) => key).values()) {
    holds.sort((a, b) => a.from - b.from);
    findings.push(
      ...oneHolder(history, excuses, holds),
      ...fencing(history, excuses, holds),
      ...free(history, excuses, holds),
    );
  }
  return [...findings, ...answered(history, excuses), ...nothingLeft(history, excuses)];
}

/** Until when the holder believed in it. */
function believedUntil(hold: Hold, options: LockProfile['options'] | undefined, excuses: Excuses): number {
  const { from, lostAt, releasedAt, process } = hold;
  const until = Math.min(lostAt ?? Number.POSITIVE_INFINITY, releasedAt ?? Number.POSITIVE_INFINITY);
  // At the end of a lease two count who may be off by a moment, the server and a timer; a lock that is given back before is not.
  const isOfLease = lostAt !== undefined || (options?.renew === false && until - from > options.lease / 2);
  return Math.min(until, excuses.endOf(process)) - (isOfLease ? LATE : 0);
}

function* oneHolder(history: History, excuses: Excuses, holds: readonly Hold[]): Iterable<Finding> {
  const options = history.lockProfiles.find(({ name }) => name === holds[0]?.profile)?.options;
  for (const [i, first] of holds.entries()) {
    const until = believedUntil(first, options, excuses);
    for (const second of holds.slice(i + 1)) {
      const both = second.from < until;
      // A lock is deleted by its own token only: who was passed over is told so.
      const robbed = first.wasOurs === true && second.from < (first.releasedAt ?? 0) && second.askedAt > first.from;
      if (!both && !robbed) break;
      const isLost = robbed ? excuses.mayBeLost(second.from) : lostBetween(excuses, first, second);
      if (isLost && (robbed || isToldInTime(history, excuses, { first, second, options }))) continue;
      // Who stands still believes nothing, and when it goes on it is told soon.
      const stood = excuses.stoodStill(first.process, second.from, until);
      if (!robbed && stood > 0 && until - second.from - stood <= LATE) continue;
      yield {
        check: 'one holder',
        at: second.from,
        what:
          `'${first.key}': ${first.process} had it from ${seconds(history, first.from)} to ${seconds(history, until)} (token ${first.token}), ` +
          `${second.process} from ${seconds(history, second.from)} (token ${second.token})`,
      };
    }
  }
}

/** Whether Redis lost the lock of one of two, whose replies may have taken longer than that. */
function lostBetween(excuses: Excuses, first: Hold, second: Hold): boolean {
  return excuses.lostLocks(Math.min(first.askedAt, second.askedAt), second.from);
}

/** Whether of two who have a lock that Redis lost, the one who got it first knows soon. Tokens, not replies, tell who that was. */
function isToldInTime(
  history: History,
  excuses: Excuses,
  { first, second, options }: { first: Hold; second: Hold; options: LockProfile['options'] | undefined },
): boolean {
  const isInOrder = first.fencingToken <= second.fencingToken;
  const robbed = isInOrder ? first : second;
  const robber = isInOrder ? second : first;
  return (
    believedUntil(robbed, options, excuses) <= knownAt(history, excuses, { first: robbed, second: robber, options })
  );
}

/** By when the first holder knows that the second has the lock, which Redis lost: it renews every third of its lease. */
function knownAt(
  { commandTimeout }: History,
  excuses: Excuses,
  { first, second, options }: { first: Hold; second: Hold; options: LockProfile['options'] | undefined },
): number {
  if (!options || options.renew === false) return Number.POSITIVE_INFINITY;
  const { process, askedAt } = first;
  const at = second.from + options.lease / 3 + commandTimeout;
  if (excuses.cutOff(process, second.from, at) || excuses.lostInFailover(askedAt, at)) return Number.POSITIVE_INFINITY;
  return at + excuses.stoodStill(process, second.from, at);
}

function* fencing(history: History, excuses: Excuses, holds: readonly Hold[]): Iterable<Finding> {
  let last: Hold | undefined;
  for (const hold of holds) {
    // Who was stopped between getting it and writing that down is not in the order of getting it.
    if (excuses.wasStopped(hold.process, hold.askedAt, hold.from + SLACK)) continue;
    // Of two that have it at once, since it was lost, the reply to the second may come first.
    const isUnordered = last && last.from > hold.askedAt && lostBetween(excuses, last, hold);
    if (last && !isUnordered && hold.fencingToken <= last.fencingToken) {
      yield {
        check: 'fencing',
        at: hold.from,
        what: `'${hold.key}': ${hold.process} got ${hold.fencingToken} at ${seconds(history, hold.from)}, after ${last.process} got ${last.fencingToken} at ${seconds(history, last.from)}`,
      };
    }
    last = hold;
  }
}

function* answered(history: History, excuses: Excuses): Iterable<Finding> {
  for (const { process, key, profile, from, until, error } of history.refusals) {
    const { wait } = history.lockProfiles.find(({ name }) => name === profile)?.options ?? { wait: 5_000 };
    const took = (until ?? history.until) - from - excuses.stoodStill(process, from, until ?? history.until);
    if (until === undefined || took > wait + 3 * history.commandTimeout + 1_000) {
      yield {
        check: 'answered',
        at: from,
        what: `${process} asked for the lock '${key}' and had no answer for ${Math.round(took)} ms`,
      };
    } else if (
      error === 'LockUnavailableError' &&
      !excuses.cutOff(process, from, until) &&
      excuses.lifeOf(process)?.end !== 'left'
    ) {
      yield { check: 'errors', at: until, what: `'${key}': ${process} could not have the lock though Redis was there` };
    } else if (error !== 'LockUnavailableError' && error !== 'LockContendedError') {
      yield { check: 'errors', at: until, what: `'${key}': ${process} asked for the lock and got ${error}` };
    }
  }
}

/** Who waits for a lock gets it when it is free: woken, or by a poll. */
function* free(history: History, excuses: Excuses, holds: readonly Hold[]): Iterable<Finding> {
  const key = holds[0]!.key;
  const lease = history.lockProfiles.find(({ name }) => name === holds[0]!.profile)?.options.lease ?? 0;
  const had = [...holds, ...ofTheDead(history, key)].sort((a, b) => a.askedAt - b.askedAt);
  for (const refusal of history.refusals) {
    if (refusal.key !== key || refusal.error !== 'LockContendedError' || refusal.until === undefined) continue;
    let since = refusal.from;
    for (const { askedAt, until, process } of had) {
      if (askedAt - since > FREE) break;
      since = Math.max(since, until ?? excuses.endOf(process) + lease);
    }
    if (refusal.until - since <= FREE || excuses.cutOff(refusal.process, since - FREE, since + FREE)) continue;
    // Somebody's lock may have been left behind, or lost on the way to him.
    if (
      history.faults.some(
        ({ is, from, until }) =>
          (is === 'redis away' || is === 'blackhole') && until > since - lease - 3_000 && from < since + FREE,
      )
    )
      continue;
    yield {
      check: 'waits for nobody',
      at: refusal.until,
      what: `'${key}': ${refusal.process} waited for the lock, which nobody had since ${seconds(history, since)}`,
    };
  }
}

/** What a process took when it was killed, before it wrote that down: nobody has it, but its lock was seen. */
function ofTheDead({ processes, sightings }: History, key: string): Pick<Hold, 'askedAt' | 'until' | 'process'>[] {
  return processes
    .filter(({ end }) => end === 'killed')
    .flatMap(({ process, store, until: killedAt }) => {
      const seen = sightings.filter(
        (each) => each.kind === 'lock' && each.key === key && each.at > killedAt && each.token.startsWith(`${store}#`),
      );
      return seen.length > 0 ? [{ process, askedAt: killedAt, until: seen.at(-1)!.at }] : [];
    });
}

/** What is locked is locked for somebody: a load, a write, a holder. */
function* nothingLeft(history: History, excuses: Excuses): Iterable<Finding> {
  const stores = new Map(history.processes.map((life) => [life.store, life]));
  const users = usersByKey(history, excuses);
  for (const [token, sightings] of groupBy(history.sightings, (sighting) => sighting.token)) {
    const life = stores.get(token.split('#')[0] ?? '');
    if (!life) continue;
    let since: number | undefined;
    for (const sighting of sightings) {
      const { at, kind, key } = sighting;
      const isUsed = (users.get(`${kind} ${life.process} ${key}`) ?? []).some(
        ({ from, until }) => from <= at + SLACK && until >= at - SLACK,
      );
      if (isUsed || isExcused(history, excuses, life, sighting)) {
        since = undefined;
        continue;
      }
      since ??= at;
      // An attempt of which nothing comes, and a release, may take that long.
      if (at - since <= history.commandTimeout + 100) continue;
      yield {
        check: 'no lock outlives its attempt',
        at,
        what: `'${key}' was locked from ${seconds(history, since)} to ${seconds(history, at)} by ${token} of ${life.process}, which had no use for it`,
      };
      break;
    }
  }
}

function isExcused(history: History, excuses: Excuses, life: ProcessLife, sighting: Sighting): boolean {
  const { at, kind } = sighting;
  // The lease of a killed process ends its locks, and those that its last commands still take.
  if (life.end === 'killed' && at <= deadline(history, life.until, sighting)) return true;
  if (excuses.cutOff(life.process, at - SLACK, at)) return true;
  // A failover may lose a release; then the lease ends the lock.
  const lease = leaseOf(history, sighting);
  if (excuses.lostInFailover(at - lease - RECOVERY, at)) return true;
  return kind === 'lock' && excuses.cutOff(life.process, at - lease - 500, at, LEFT_BEHIND);
}

/** When the last lease of a process that was killed has ended. */
function deadline(history: History, killedAt: number, sighting: Sighting): number {
  let sent = killedAt;
  for (const { is, from, until } of history.faults)
    if (is === 'redis away' && from <= killedAt) sent = Math.max(sent, until);
  return sent + leaseOf(history, sighting) + 1_000;
}

function leaseOf({ profiles, lockProfiles }: History, { kind, key }: Sighting): number {
  const profile =
    kind === 'lock'
      ? lockProfiles.find(({ name }) => name === key)
      : profiles.find((each) => keysOf(each).includes(key));
  // A `set` claims with the cache's own lease.
  return Math.max(profile?.options.lease ?? 0, 5_000);
}

function usersByKey(history: History, excuses: Excuses): Map<string, { from: number; until: number }[]> {
  const users = new Map<string, { from: number; until: number }[]>();
  const add = (name: string, from: number, until: number) => {
    const list = users.get(name);
    if (list) list.push({ from, until });
    else users.set(name, [{ from, until }]);
  };
  // One that is deaf is given up when it is aborted, and its lock with it.
  for (const load of history.loads) add(`cache ${load.process} ${load.key}`, load.from, excuses.endOfLoad(load));
  for (const { process, key, from, until, by } of history.writes) {
    if (by === 'set') add(`cache ${process} ${key}`, from, until ?? excuses.endOf(process));
  }
  for (const hold of history.holds)
    add(`lock ${hold.process} ${hold.key}`, hold.askedAt, hold.until ?? excuses.endOf(hold.process));
  return users;
}
