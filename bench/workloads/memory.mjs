import { meter, perOperation } from '../harness/meter.mjs';
import { withProcesses } from '../harness/processes.mjs';

const MB = 2 ** 20;

export const memory = {
  name: 'memory',
  title: 'Memory after 100,000 keys',
  about: 'One process loads 100,000 keys, each once. What is left on the heap afterwards would be a leak.',
  full: { count: 100_000, callers: 64 },
  rounds: 2,
  suits: ({ inMemory }) => !inMemory,
  async measure({ redis, system, numbers }) {
    await redis.empty();
    const { count, callers } = numbers;
    return withProcesses(1, redis, system, {}, async ([process]) => {
      await process.call('calls', { prefix: 'warm-up', cold: true, count: 5_000, callers });
      const before = await process.call('memory');
      const metered = await meter(redis, [process], async () => {
        for (let part = 0; part < 4; part++) {
          await process.call('calls', { prefix: `${part}:`, cold: true, count: count / 4, callers });
        }
      });
      const after = await process.call('memory');
      const grown = after.heapUsed - before.heapUsed;
      return {
        heap: before.heapUsed / MB,
        grown: grown / MB,
        bytesPerKey: grown / count,
        rssGrown: (after.rss - before.rss) / MB,
        ...perOperation(metered, count),
      };
    });
  },
  columns: [
    ['heap', 'heap before, MB', 1],
    ['grown', 'grown by, MB', 2],
    ['bytesPerKey', 'bytes per key', 1],
    ['rssGrown', 'RSS grown by, MB', 1],
    ['commandsPerOperation', 'commands', 2],
    ['redisCpuPerOperation', 'Redis CPU µs', 1],
    ['cpuPerOperation', 'CPU µs', 1],
  ],
};
