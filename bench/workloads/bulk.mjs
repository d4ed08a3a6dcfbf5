import { meter, perOperation } from '../harness/meter.mjs';
import { quietest } from '../harness/neighbours.mjs';
import { withProcesses } from '../harness/processes.mjs';
import { BASELINE } from '../systems.mjs';

export const bulk = {
  name: 'bulk',
  title: '1,000 keys at once',
  about:
    'ioredis: one `MGET` and `JSON.parse`; for those that are missing one loader for all, and a pipeline of `SET`, without ' +
    'any lock. ours: 1,000 calls of `getOrLoad` in one tick. ours-many: one call of `getOrLoadMany`. CPU and commands are ' +
    'those of all 1,000 keys.',
  full: { size: 1_000, count: 60 },
  needs: ['getMany'],
  only: ['ioredis', 'ours', 'ours-many'],
  async measure({ redis, system, round, numbers, hurry }) {
    await redis.empty();
    const { size, count } = numbers;
    return withProcesses(1, redis, system, {}, async ([process]) => {
      await process.call('fill', { prefix: 'k', count: size });
      const samples = [];
      for (const cold of [false, true]) {
        const prefix = cold ? `${round}:` : 'k';
        await process.call('bulk', { prefix: cold ? 'warm-up' : prefix, size, cold, count: Math.ceil(count / 3) });
        const sample = await quietest({ pids: [process.pid, redis.pid], hurry }, async (attempt) => {
          const calls = { size, count, cold, prefix: cold ? `${prefix}${attempt}:` : prefix };
          const metered = await meter(redis, [process], () => process.call('bulk', calls));
          const { cpu, median } = metered.result;
          return { median, perSecond: (size / median) * 1000, ...perOperation({ ...metered, cpu }, count) };
        });
        samples.push({ variant: cold ? 'all missing' : 'all stored', ...sample });
      }
      return samples;
    });
  },
  columns: [
    ['median', 'median ms', 2],
    ['perSecond', 'keys/s', 0],
    ['ratio', `× ${BASELINE}`, 2],
    ['cpuPerOperation', 'CPU µs', 0],
    ['redisCpuPerOperation', 'Redis CPU µs', 0],
    ['commandsPerOperation', 'commands', 1],
    ['readsPerOperation', 'socket reads', 1],
  ],
  ratio: { of: 'perSecond', to: BASELINE },
};
