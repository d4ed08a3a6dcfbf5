import { meter, perOperation } from '../harness/meter.mjs';
import { quietest } from '../harness/neighbours.mjs';
import { withProcesses } from '../harness/processes.mjs';
import { BASELINE } from '../systems.mjs';

/** Hits in memory take so much less time that more are needed to measure it. */
const MORE_IN_MEMORY = 4;

export const CALL_COLUMNS = [
  ['perSecond', 'calls/s', 0],
  ['ratio', `× ${BASELINE}`, 2],
  ['median', 'median µs', 0],
  ['p99', 'p99 µs', 0],
  ['cpuPerOperation', 'CPU µs', 1],
  ['redisCpuPerOperation', 'Redis CPU µs', 1],
  ['commandsPerOperation', 'commands', 3],
  ['readsPerOperation', 'socket reads', 3],
];
const RATIO = { of: 'perSecond', to: BASELINE };
const CHART = { field: 'ratio', title: `calls per second, as a multiple of ${BASELINE}`, logarithmic: true };

/** So many calls at least before the first is measured: the optimizing compiler wants to see tens of thousands. */
export const WARM_UP = 60_000;

/** Fills so many keys, calls for a while so that everything is compiled, then measures each variant. */
async function measureHits({ redis, system, round, numbers, hurry, variants }) {
  await redis.empty();
  const { count, distinct, bytes, callers } = numbers;
  const more = system.inMemory ? MORE_IN_MEMORY : 1;
  return withProcesses(1, redis, system, {}, async ([process]) => {
    const samples = [];
    for (const variant of variants) {
      const calls = { prefix: 'k', distinct, callers, bytes, ...variant };
      calls.count = Math.max(1, Math.round(more * (variant.count ?? count)));
      if (samples.length === 0 || variant.bytes) await process.call('fill', { ...calls, count: calls.distinct });
      // What a later variant runs is compiled by then.
      const warmUp = samples.length === 0 ? Math.max(2 * calls.count, hurry ? 0 : WARM_UP) : Math.ceil(calls.count / 4);
      await process.call('calls', { ...calls, count: warmUp, seed: 7 });
      const sample = await quietest({ pids: [process.pid, redis.pid], hurry }, async () => {
        const metered = await meter(redis, [process], () => process.call('calls', { ...calls, seed: 1000 + round }));
        const { cpu, ...result } = metered.result;
        return { ...result, ...perOperation({ ...metered, cpu }, calls.count) };
      });
      samples.push({ variant: variant.name, ...sample });
    }
    return samples;
  });
}

export const hot = {
  name: 'hot',
  title: 'Hits on one hot key',
  about:
    '64 callers in one process ask for one key that is stored. Fewer than one command a call: callers share a read.',
  full: { count: 80_000, distinct: 1, callers: 64 },
  quick: { count: 10_000, distinct: 1, callers: 64 },
  measure: async (context) => (await measureHits({ ...context, variants: [{}] }))[0],
  columns: CALL_COLUMNS,
  ratio: RATIO,
  chart: CHART,
};

export const hits = {
  name: 'hits',
  title: 'Hits on 10,000 keys',
  about:
    'Callers in one process ask for keys at random, each again when it was answered. There is next to nothing to share.',
  full: { count: 40_000, distinct: 10_000, callers: [64, 1, 4, 16, 256] },
  quick: { count: 10_000, distinct: 10_000, callers: [64] },
  measure: ({ numbers, ...context }) =>
    measureHits({
      ...context,
      numbers,
      variants: numbers.callers.map((callers) => ({
        name: callers === 1 ? '1 caller' : `${callers} callers`,
        callers,
        // One after another takes longer.
        count: callers < 16 ? numbers.count / 4 : numbers.count,
      })),
    }),
  columns: CALL_COLUMNS,
  ratio: RATIO,
  chart: CHART,
};

export const sequential = {
  name: 'sequential',
  title: 'Sequential hits',
  about: 'One caller asks for 1,000 keys at random, one after another: the time of a hit without queueing.',
  full: { count: 12_000, distinct: 1_000, callers: 1 },
  quick: { count: 3_000, distinct: 1_000, callers: 1 },
  measure: async (context) => (await measureHits({ ...context, variants: [{}] }))[0],
  columns: CALL_COLUMNS,
  ratio: RATIO,
  chart: CHART,
};

export const sizes = {
  name: 'sizes',
  title: 'Hits on values of 100 B to 100 kB',
  about: '64 callers in one process ask for keys at random.',
  full: {
    callers: 64,
    sizes: [
      { name: '100 B', bytes: 100, distinct: 1_000, count: 40_000 },
      { name: '1 kB', bytes: 1_000, distinct: 1_000, count: 40_000 },
      { name: '10 kB', bytes: 10_000, distinct: 1_000, count: 10_000 },
      { name: '100 kB', bytes: 100_000, distinct: 100, count: 1_500 },
    ],
  },
  rounds: 3,
  measure: ({ numbers, ...context }) =>
    measureHits({
      ...context,
      numbers,
      variants: numbers.sizes.map((size) => ({ ...size, prefix: `${size.bytes}:` })),
    }),
  columns: CALL_COLUMNS,
  ratio: RATIO,
  chart: CHART,
};
