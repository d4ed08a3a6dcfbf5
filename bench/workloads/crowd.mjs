// What the workloads of several processes and one key have in common.
import { meter, perOperation } from '../harness/meter.mjs';
import { percentile, sum } from '../harness/statistics.mjs';
import { now } from '../harness/time.mjs';

/** So that nothing is compiled, connected or taught to the server while it is measured: hits and misses of other keys. */
export async function warmUp(processes, count) {
  await Promise.all(
    processes.map(async (process, i) => {
      await process.call('calls', { prefix: `warm-up ${i}:`, cold: true, count, callers: 50 });
      await process.call('fill', { prefix: `warm-up ${i}:`, count, callers: 50 });
    }),
  );
}

/** All processes get the command for the same moment. */
export async function together(redis, processes, command, options) {
  const at = now() + 150;
  const metered = await meter(redis, processes, () =>
    Promise.all(processes.map((process) => process.call(command, { ...options, at }))),
  );
  const logs = metered.result;
  return { logs, at, metered, answers: sum(logs.map(({ times }) => times?.length ?? 0)) };
}

/** What all processes saw, as one. */
export function summary({ logs, metered, answers }) {
  const times = logs.flatMap((log) => log.times).sort((left, right) => left - right);
  const loads = sum(logs.map((log) => log.loads));
  const lastAnswer = Math.max(...logs.map((log) => log.lastAnswer));
  const firstLoad = Math.min(...logs.flatMap(({ loaded }) => loaded.map(([, end]) => end)));
  return {
    loads,
    atOnce: Math.max(...logs.map((log) => log.atOnce)),
    commands: metered.commands,
    byCommand: Object.entries(metered.byCommand)
      .map(([name, calls]) => `${name} ${calls}`)
      .join(', '),
    ...perOperation(metered, Math.max(1, answers)),
    median: percentile(times, 50),
    p99: percentile(times, 99),
    longest: times.at(-1),
    afterLoad: lastAnswer - firstLoad,
  };
}

/** What should not have happened, in words. */
export function faultsOf(logs) {
  const faults = [];
  const hung = sum(logs.map((log) => log.hung ?? 0));
  if (hung > 0) faults.push(`${hung} callers hung`);
  const wrong = sum(logs.map((log) => log.wrong ?? 0));
  if (wrong > 0) faults.push(`${wrong} wrong values`);
  const unhandled = Math.max(...logs.map((log) => log.unhandled));
  if (unhandled > 0) faults.push('unhandled rejections');
  const errors = new Map();
  for (const log of logs)
    for (const [message, times] of Object.entries(log.errors)) errors.set(message, (errors.get(message) ?? 0) + times);
  for (const [message, times] of errors) faults.push(`${times} errors (${message})`);
  return faults;
}
