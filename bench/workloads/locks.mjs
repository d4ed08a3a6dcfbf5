import { meter, perOperation } from '../harness/meter.mjs';
import { quietest } from '../harness/neighbours.mjs';
import { withProcesses } from '../harness/processes.mjs';
import { sum } from '../harness/statistics.mjs';
import { faultsOf, together } from './crowd.mjs';

/** So many until all that a lock runs through is compiled, whoever's it is. */
const WARM_UP = 40_000;

export const locks = {
  name: 'locks',
  title: 'Locks nobody contends for',
  about: 'One process takes and releases locks, each of its own name: one after another, and by 16 callers.',
  full: { count: 4_000, callers: [1, 16] },
  quick: { count: 1_000, callers: [1, 16] },
  needs: ['lock'],
  async measure({ redis, system, round, numbers, hurry }) {
    await redis.empty();
    return withProcesses(1, redis, system, {}, async ([process]) => {
      const samples = [];
      for (const callers of numbers.callers) {
        const taken = { count: numbers.count, callers };
        await process.call('locks', { ...taken, prefix: 'warm-up', count: WARM_UP });
        const sample = await quietest({ pids: [process.pid, redis.pid], hurry }, async (attempt) => {
          const prefix = `lock ${round}.${callers}.${attempt}:`;
          const metered = await meter(redis, [process], () => process.call('locks', { ...taken, prefix }));
          const { cpu, perSecond } = metered.result;
          return { perSecond, ...perOperation({ ...metered, cpu }, taken.count) };
        });
        samples.push({ variant: callers === 1 ? '1 caller' : `${callers} callers`, ...sample });
      }
      return samples;
    });
  },
  columns: [
    ['perSecond', 'locks/s', 0],
    ['ratio', '× redis-semaphore', 2],
    ['cpuPerOperation', 'CPU µs', 1],
    ['redisCpuPerOperation', 'Redis CPU µs', 1],
    ['commandsPerOperation', 'commands', 2],
  ],
  ratio: { of: 'perSecond', to: 'redis-semaphore' },
  chart: { field: 'ratio', title: 'acquired and released per second, as a multiple of redis-semaphore' },
};

export const queue = {
  name: 'queue',
  title: 'A lock that 100 callers want',
  about: '4 processes with 25 callers each want one lock at one moment, and each keeps it for 2 ms.',
  full: { processes: 4, callers: 25, hold: 2, lease: 10_000, wait: 60_000 },
  needs: ['lock'],
  rounds: 3,
  async measure({ redis, system, round, numbers, hurry }) {
    await redis.empty();
    const { processes: count, callers, hold, lease, wait } = numbers;
    return withProcesses(count, redis, system, { lease, wait }, async (processes) => {
      await Promise.all(
        processes.map((process, i) => process.call('locks', { prefix: `${i}:`, count: 200, callers: 4 })),
      );
      const pids = [...processes.map(({ pid }) => pid), redis.pid];
      return quietest({ pids, hurry, limit: 0.3 }, async (attempt) => {
        const name = `wanted ${round}.${attempt}`;
        const { logs, at, metered } = await together(redis, processes, 'queue', { name, callers, hold });
        const held = logs.flatMap((log) => log.held).sort(([left], [right]) => left - right);
        const overlaps = held.filter(([from], i) => i > 0 && from < held[i - 1][1]).length;
        const faults = faultsOf(logs);
        if (overlaps > 0) faults.unshift(`${overlaps} held it at once`);
        const total = held.length === 0 ? null : Math.max(...held.map(([, until]) => until)) - at;
        return {
          total,
          handOver: held.length === 0 ? null : (total - sum(held.map(([from, until]) => until - from))) / held.length,
          commands: metered.commands,
          ...perOperation(metered, count * callers),
          faults,
        };
      });
    });
  },
  columns: [
    ['total', 'until all had it, ms', 0],
    ['total', 'worst', 0, 'worst'],
    ['handOver', 'free between two, ms', 2],
    ['commands', 'commands', 0],
    ['commandsPerOperation', 'per lock', 1],
    ['redisCpuPerOperation', 'Redis CPU µs per lock', 0],
    ['cpuPerOperation', 'CPU µs per lock', 0],
  ],
  chart: { field: 'total', title: 'ms until all 100 callers had the lock', logarithmic: true, less: true },
};
