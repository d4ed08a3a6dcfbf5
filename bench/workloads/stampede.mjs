import { quietest } from '../harness/neighbours.mjs';
import { withProcesses } from '../harness/processes.mjs';
import { faultsOf, summary, together, warmUp } from './crowd.mjs';

const COLUMNS = [
  ['loads', 'loads', 0],
  ['loads', 'worst', 0, 'worst'],
  ['afterLoad', 'last caller after the first load, ms', 1],
  ['afterLoad', 'worst', 1, 'worst'],
  ['p99OverLoad', 'p99 over the load, ms', 1],
  ['commands', 'commands', 0],
  ['commandsPerOperation', 'per caller', 2],
  ['redisCpuPerOperation', 'Redis CPU µs per caller', 1],
  ['cpuPerOperation', 'CPU µs per caller', 1],
];

/** So many processes with so many callers ask for one cold key at one moment. */
async function measureStampede({ redis, system, numbers, hurry }) {
  await redis.empty();
  const { processes: count, callers, loadTime, lease, wait, warmUps, repeat } = numbers;
  return withProcesses(count, redis, system, { lease, wait }, async (processes) => {
    await warmUp(processes, warmUps);
    const pids = [...processes.map(({ pid }) => pid), redis.pid];
    const samples = [];
    for (let i = 0; i < repeat; i++) {
      const sample = await quietest({ pids, hurry, limit: 0.3 }, async (attempt) => {
        const crowd = await together(redis, processes, 'crowd', { key: `cold ${i}.${attempt}`, callers, loadTime });
        const seen = summary(crowd);
        const faults = faultsOf(crowd.logs);
        if (seen.loads !== 1) faults.unshift(`${seen.loads} loads`);
        return { ...seen, p99OverLoad: seen.p99 - loadTime, faults };
      });
      samples.push(sample);
    }
    return samples;
  });
}

export const stampede = {
  name: 'stampede',
  title: 'Stampede on a cold key',
  about:
    '4 processes with 250 callers each ask for one key at one moment; the loader takes 200 ms. One load is right. The last ' +
    'caller is answered so long after the first load has ended.',
  full: { processes: 4, callers: 250, loadTime: 200, lease: 10_000, wait: 5_000, warmUps: 1_500, repeat: 2 },
  quick: { processes: 4, callers: 250, loadTime: 200, lease: 10_000, wait: 5_000, warmUps: 300, repeat: 1 },
  measure: measureStampede,
  columns: COLUMNS,
  chart: { field: 'commands', title: 'commands that Redis ran', logarithmic: true, less: true },
};

export const slowLoader = {
  name: 'slow-loader',
  title: 'A loader that takes three leases',
  about: '4 processes with 25 callers each; the lease is 500 ms, the loader takes 1,500 ms. One load is right.',
  full: { processes: 4, callers: 25, loadTime: 1_500, lease: 500, wait: 8_000, warmUps: 1_500, repeat: 1 },
  rounds: 3,
  measure: measureStampede,
  columns: COLUMNS,
  chart: { field: 'commands', title: 'commands that Redis ran', logarithmic: true, less: true },
};
