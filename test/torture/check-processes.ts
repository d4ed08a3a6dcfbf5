/** What stays behind, whether all works again, and what should never happen at all. */
import { type Finding, seconds } from './check.js';
import type { Excuses } from './excuses.js';
import type { History, Measurement } from './history.js';

const MEGABYTE = 2 ** 20;
/** Less is the engine's own. */
const HEAP_GROWTH = 6;
/** Two reads and a load on a busy machine. */
const PROBE_TIME = 1_500;

export function checkProcesses(history: History, excuses: Excuses): Finding[] {
  return [
    ...history.accidents.map(
      ({ process, at, what }): Finding => ({ check: 'accidents', at, what: `${process}: ${what}` }),
    ),
    ...history.measurements.flatMap((measurement) => [...nothingGrows(history, measurement)]),
    ...recovers(history, excuses),
  ];
}

function* nothingGrows(
  history: History,
  { process, before, after, closed, signalListeners }: Measurement,
): Iterable<Finding> {
  const at = history.until;
  const check = 'nothing grows';
  for (const [type, count] of Object.entries(after.resources)) {
    // One for commands, one to listen, and one of the suite's own; a process that began without Redis had none yet.
    const had = Math.max(before.resources[type] ?? 0, type === 'TCPSocketWrap' ? 3 : 0);
    if (count > had) yield { check, at, what: `${process} has ${count} ${type}, and had ${had} at the start` };
  }
  const { TCPSocketWrap: sockets = 0 } = closed.resources;
  if (sockets > 0) yield { check, at, what: `${process} has ${sockets} sockets after closing` };
  const timers = (closed.resources['Timeout'] ?? 0) - (before.resources['Timeout'] ?? 0);
  if (timers > 0) yield { check, at, what: `${process} has ${timers} timers more after closing than before` };
  const growth = (after.heap - before.heap) / MEGABYTE;
  if (growth > HEAP_GROWTH) yield { check, at, what: `the heap of ${process} grew by ${growth.toFixed(1)} MB` };
  if (signalListeners > 0)
    yield { check, at, what: `${process} left ${signalListeners} listeners on a caller's signal` };
}

function* recovers(history: History, excuses: Excuses): Iterable<Finding> {
  for (const { process, after, over, from, until, hit } of history.probes) {
    const isDisturbed = history.faults.some(
      (fault) =>
        (fault.process === undefined || fault.process === process) &&
        fault.is !== 'script flush' &&
        fault.is !== 'renewal failed' &&
        fault.is !== 'delay' &&
        fault.until > over + 1 &&
        fault.from < until,
    );
    const born = excuses.lifeOf(process)?.from ?? 0;
    if (isDisturbed || born > over) continue;
    if (!hit || until - from > PROBE_TIME) {
      const what = hit ? `took ${Math.round(until - from)} ms` : 'was not found in the cache';
      yield {
        check: 'recovers',
        at: until,
        what: `${process}: a key that was loaded 2 s after "${after}" was over (${seconds(history, over)}) ${what}`,
      };
    }
  }
}
