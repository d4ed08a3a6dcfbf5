/**
 * When which process could not do what it should: computed from the director's log of faults, and from how long the machine
 * itself kept a process from running; never from what the library says.
 */
import type { Fault, History, Load, ProcessLife, Write } from './history.js';

/** After Redis came back, or a process was continued, it has so long to work as before. */
export const RECOVERY = 2_000;
/** A busy machine: when a process stood still for so long, its deadlines come before the replies that wait for it. */
const LONG_STALL = 500;
/** After that, or after slow replies, it is this. */
const SHORT_RECOVERY = 1_000;

export class Excuses {
  readonly #history: History;
  readonly #lives = new Map<string, ProcessLife>();
  /** By process; those that concern all are in each. */
  readonly #cutOff = new Map<string, Fault[]>();
  readonly #lost: Fault[];

  constructor(history: History) {
    this.#history = history;
    for (const life of history.processes) {
      this.#lives.set(life.process, life);
      const concerning = history.faults.filter(({ process }) => process === undefined || process === life.process);
      this.#cutOff.set(life.process, concerning.filter(cutsOff));
    }
    this.#lost = history.faults.filter(({ lost }) => lost !== undefined);
  }

  lifeOf(process: string): ProcessLife | undefined {
    return this.#lives.get(process);
  }

  /** When a process ended, for what it left open. */
  endOf(process: string): number {
    return this.#lives.get(process)?.until ?? this.#history.until;
  }

  /**
   * Whether a process may have been without Redis at some moment of an interval.
   *
   * @param atLeast only if it was so for this long, in milliseconds
   */
  cutOff(process: string, from: number, until: number, atLeast = 0): boolean {
    const faults = this.#cutOff.get(process) ?? this.#history.faults.filter(cutsOff);
    return faults.some(
      (fault) => fault.from <= until && fault.until + recoveryOf(fault) >= from && fault.until - fault.from >= atLeast,
    );
  }

  /** How long, of an interval, a process did not run. */
  stoodStill(process: string, from: number, until: number): number {
    const faults = this.#history.faults.filter(
      (fault) =>
        (fault.is === 'freeze' || fault.is === 'stall') && (fault.process === undefined || fault.process === process),
    );
    // What was done to it and what it noticed itself may be the same.
    let stood = 0;
    let counted = from;
    for (const fault of faults.sort((a, b) => a.from - b.from)) {
      const begins = Math.max(counted, fault.from);
      const ends = Math.min(until, fault.until);
      if (ends > begins) stood += ends - begins;
      counted = Math.max(counted, ends);
    }
    return stood;
  }

  /** Whether a process was stopped at some moment of an interval: it may believe what is no longer so. */
  wasStopped(process: string, from: number, until: number): boolean {
    return this.stoodStill(process, from, until) > 0;
  }

  /** Whether Redis lost the locks that there were, at some moment of an interval. */
  lostLocks(from: number, until: number): boolean {
    return this.#lost.some((fault) => fault.from <= until && fault.until >= from);
  }

  /** Whether there was a failover at some moment of an interval. */
  lostInFailover(from: number, until: number): boolean {
    return this.#lost.some((fault) => fault.lost === 'locks and writes' && fault.from <= until && fault.until >= from);
  }

  /** Whether what Redis acknowledged at that time may be lost: replication is asynchronous, and two may call themselves primary. */
  mayBeLost(at: number): boolean {
    return this.#lost.some(
      ({ lost, from, until }) => lost === 'locks and writes' && at >= from - 1_000 && at <= until + RECOVERY,
    );
  }

  /** Until when a write may still have an effect: one that wasn't acknowledged may be on its way, or be made up for. */
  effectOf({ process, until, acknowledged }: Pick<Write, 'process' | 'until' | 'acknowledged'>): number {
    if (acknowledged && until !== undefined) return until;
    let end = (until ?? this.endOf(process)) + RECOVERY;
    // What waits before a frozen server is carried out when it is continued.
    for (const fault of [...(this.#cutOff.get(process) ?? [])].sort((a, b) => a.from - b.from)) {
      if (fault.from <= end) end = Math.max(end, fault.until + RECOVERY);
    }
    return end;
  }

  /** When nothing came of a load any more: it ended, was told to, or its process was killed. */
  endOfLoad({ until, abortedAt, process }: Load): number {
    return Math.min(until ?? this.endOf(process), abortedAt ?? Number.POSITIVE_INFINITY);
  }
}

/** What keeps commands from being answered in time. Connections that are cut don't: they are made anew at once. */
function cutsOff({ is, from, until }: Fault): boolean {
  if (is === 'stall') return until - from >= LONG_STALL;
  return is === 'redis away' || is === 'blackhole' || is === 'freeze' || is === 'slow';
}

function recoveryOf({ is }: Fault): number {
  return is === 'stall' || is === 'slow' ? SHORT_RECOVERY : RECOVERY;
}
