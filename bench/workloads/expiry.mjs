import { quietest } from '../harness/neighbours.mjs';
import { withProcesses } from '../harness/processes.mjs';
import { faultsOf, summary, together, warmUp } from './crowd.mjs';

/** How much later than its TTL a value may be seen: it travels, and its caller waits for a core. */
const ON_ITS_WAY = 100;

export const expiry = {
  name: 'expiry',
  title: 'Expiry under load',
  about:
    '4 processes with 50 callers each ask for one key for 5 s, with a pause of 10 ms; the TTL is 300 ms, the loader takes ' +
    '50 ms. Ideal: one load each time a TTL and a load have passed. async-cache-dedupe knows whole seconds only; its ideal ' +
    'is that of 1 s.',
  full: { processes: 4, callers: 50, duration: 5_000, pause: 10, loadTime: 50, ttl: 300, warmUps: 1_500 },
  rounds: 3,
  async measure({ redis, system, numbers, hurry }) {
    await redis.empty();
    const { processes: count, warmUps, ttl, ...asking } = numbers;
    return withProcesses(count, redis, system, { ttl }, async (processes) => {
      await warmUp(processes, warmUps);
      const pids = [...processes.map(({ pid }) => pid), redis.pid];
      const { ttl: actualTtl } = processes[0].ready;
      return quietest({ pids, hurry, limit: 0.3 }, async (attempt) => {
        const options = { ...asking, key: `expires ${attempt}`, ttl: actualTtl };
        const crowd = await together(redis, processes, 'keepAsking', options);
        const seen = summary(crowd);
        const lasted = Math.max(...crowd.logs.map(({ lastAnswer }) => lastAnswer)) - crowd.at;
        const ideal = Math.ceil(lasted / (actualTtl + asking.loadTime));
        const pastTtl = Math.max(...crowd.logs.map((log) => log.pastTtl));
        const faults = faultsOf(crowd.logs);
        if (pastTtl > ON_ITS_WAY) faults.unshift(`values ${Math.round(pastTtl)} ms past their TTL`);
        if (seen.atOnce > 1) faults.unshift(`${seen.atOnce} loads at once`);
        return { ...seen, ideal, loadsToIdeal: seen.loads / ideal, pastTtl, answers: crowd.answers, faults };
      });
    });
  },
  columns: [
    ['loads', 'loads', 0],
    ['ideal', 'ideal', 0],
    ['loadsToIdeal', 'loads / ideal', 2],
    ['atOnce', 'at once', 0, 'worst'],
    ['median', 'median ms', 2],
    ['p99', 'p99 ms', 1],
    ['longest', 'longest ms', 1],
    ['pastTtl', 'past the TTL ms', 0],
    ['commandsPerOperation', 'commands per call', 2],
    ['redisCpuPerOperation', 'Redis CPU µs', 1],
    ['cpuPerOperation', 'CPU µs', 1],
    ['answers', 'calls', 0],
  ],
  chart: { field: 'loadsToIdeal', title: 'loads, as a multiple of the ideal', logarithmic: true, less: true },
};
