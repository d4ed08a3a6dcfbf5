/** Holds a history against the invariants. */
import { checkAnswers } from './check-answers.js';
import { checkLoads } from './check-loads.js';
import { checkLocks } from './check-locks.js';
import { checkProcesses } from './check-processes.js';
import { Excuses } from './excuses.js';
import type { Fault, History } from './history.js';

export type Check =
  | 'one load'
  | 'needless load'
  | 'outcome shared'
  | 'eviction wins'
  | 'freshness'
  | 'answered'
  | 'errors'
  | 'one holder'
  | 'waits for nobody'
  | 'fencing'
  | 'no lock outlives its attempt'
  | 'nothing grows'
  | 'recovers'
  | 'accidents';

/** Something that must not be. */
export interface Finding {
  readonly check: Check;
  readonly at: number;
  readonly what: string;
}

export function check(history: History): Finding[] {
  const excuses = new Excuses(history);
  const findings = [
    ...checkLoads(history, excuses),
    ...checkAnswers(history, excuses),
    ...checkLocks(history, excuses),
    ...checkProcesses(history, excuses),
  ];
  return findings.sort((a, b) => a.at - b.at);
}

/** A moment of a history, as a reader finds it in the plan. */
export function seconds({ from }: Pick<History, 'from'>, at: number): string {
  return `${((at - from) / 1_000).toFixed(3)} s`;
}

export function describeFinding(history: History, { check, at, what }: Finding): string {
  const around = history.faults
    .filter(({ is, from, until }) => from < at + 500 && until > at - (is === 'stall' || is === 'slow' ? 1_500 : 5_000))
    .map((fault) => `\n      ${describeFault(history, fault)}`);
  return `  ${seconds(history, at)}  ${check}: ${what}${around.length > 0 ? `\n    what happened then:${around.join('')}` : ''}`;
}

export function describeFault(history: History, { from, until, what, process }: Fault): string {
  return `${seconds(history, from)} to ${seconds(history, until)}  ${what}${process ? `, ${process}` : ''}`;
}

/** That something was there to be checked. */
export function summarise({ calls, loads, writes, holds, faults, probes, sightings, processes }: History): string {
  const acknowledged = writes.filter((write) => write.acknowledged).length;
  const stalls = faults.filter(({ is }) => is === 'stall' || is === 'slow');
  const failed = faults.filter(({ is }) => is === 'renewal failed').length;
  const stalled = stalls.reduce((sum, { from, until }) => sum + until - from, 0);
  return (
    `${processes.length} processes, ${calls.length} calls, ${loads.length} loads, ${acknowledged} of ${writes.length} writes acknowledged, ` +
    `${holds.length} locks held, ${sightings.length} seen, ${faults.length - stalls.length - failed} faults, ${failed} renewals failed, ${probes.length} probes; ` +
    `the machine stalled ${stalls.length} times, ${Math.round(stalled)} ms`
  );
}
