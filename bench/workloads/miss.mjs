import { meter, perOperation } from '../harness/meter.mjs';
import { quietest } from '../harness/neighbours.mjs';
import { withProcesses } from '../harness/processes.mjs';
import { BASELINE } from '../systems.mjs';
import { CALL_COLUMNS, WARM_UP } from './hits.mjs';

export const miss = {
  name: 'miss',
  title: 'Misses of distinct keys',
  about:
    'Each of 64 callers in one process asks for a key of its own; the loader answers at once. What protection costs when nobody contends.',
  full: { count: 12_000, callers: 64 },
  quick: { count: 4_000, callers: 64 },
  multiProcess: true,
  async measure({ redis, system, round, numbers, hurry }) {
    await redis.empty();
    return withProcesses(1, redis, system, {}, async ([process]) => {
      const { count, callers } = numbers;
      await process.call('calls', { prefix: 'warm-up', cold: true, count: hurry ? count : WARM_UP, callers });
      return quietest({ pids: [process.pid, redis.pid], hurry }, async (attempt) => {
        const calls = { prefix: `${round}.${attempt}:`, cold: true, count, callers };
        const metered = await meter(redis, [process], () => process.call('calls', calls));
        const { cpu, ...result } = metered.result;
        return { ...result, ...perOperation({ ...metered, cpu }, count) };
      });
    });
  },
  columns: CALL_COLUMNS,
  ratio: { of: 'perSecond', to: BASELINE },
  chart: { field: 'ratio', title: `calls per second, as a multiple of ${BASELINE}'s GET and SET` },
};
