import { meter, perOperation } from '../harness/meter.mjs';
import { quietest } from '../harness/neighbours.mjs';
import { withProcesses } from '../harness/processes.mjs';

const METHODS = { getMany: 'one by one', getOrLoadMany: 'getOrLoadMany' };

export const bulk = {
  name: 'bulk',
  title: '1,000 keys at once',
  about:
    `One call for 1,000 stored keys: \`MGET\` and \`JSON.parse\` of bare ioredis; 1,000 calls of \`getOrLoad\` in one tick; ` +
    '`getOrLoadMany`.',
  full: { keys: 1_000, times: 100 },
  needs: ['getMany'],
  only: ['ioredis', 'ours'],
  async measure({ redis, system, numbers, hurry }) {
    await redis.empty();
    return withProcesses(1, redis, system, {}, async ([process]) => {
      const { keys, times } = numbers;
      await process.call('fill', { prefix: 'k', count: keys });
      const samples = [];
      for (const method of Object.keys(METHODS).filter((name) => process.ready.methods.includes(name))) {
        const reading = { method, prefix: 'k', keys, times };
        await process.call('bulk', { ...reading, times: Math.ceil(times / 4) });
        const sample = await quietest({ pids: [process.pid, redis.pid], hurry }, async () => {
          const metered = await meter(redis, [process], () => process.call('bulk', reading));
          const { cpu, median } = metered.result;
          return { median, keysPerSecond: (keys / median) * 1000, ...perOperation({ ...metered, cpu }, times) };
        });
        samples.push({ how: system.kind === 'ours' ? METHODS[method] : 'MGET', ...sample });
      }
      return samples.map((sample, i) =>
        samples.length > 1 ? { variant: METHODS[Object.keys(METHODS)[i]], ...sample } : sample,
      );
    });
  },
  columns: [
    ['how', 'how'],
    ['median', 'median ms', 2],
    ['keysPerSecond', 'keys/s', 0],
    ['cpuPerOperation', 'CPU µs', 0],
    ['redisCpuPerOperation', 'Redis CPU µs', 0],
    ['commandsPerOperation', 'commands', 1],
    ['readsPerOperation', 'socket reads', 1],
  ],
};
