import { sum } from './statistics.mjs';

/**
 * Runs the work, and says what it cost beside time: commands that Redis ran (those inside scripts too), reads of its
 * sockets, its CPU, and the CPU of our processes (all in µs).
 */
export async function meter(redis, processes, work) {
  const cpuOfProcesses = async () => sum(await Promise.all(processes.map((process) => process.call('cpu'))));
  const cpuBefore = await cpuOfProcesses();
  await redis.resetCounts();
  const before = await redis.counts();
  const result = await work();
  const after = await redis.counts();
  const cpu = (await cpuOfProcesses()) - cpuBefore;
  return {
    result,
    byCommand: after.commands,
    commands: sum(Object.values(after.commands)),
    reads: after.reads - before.reads,
    redisCpu: after.cpu - before.cpu,
    cpu,
  };
}

/** The same for each of so many operations. */
export function perOperation({ commands, reads, redisCpu, cpu }, operations) {
  return {
    commandsPerOperation: commands / operations,
    readsPerOperation: reads / operations,
    redisCpuPerOperation: redisCpu / operations,
    cpuPerOperation: cpu / operations,
  };
}
