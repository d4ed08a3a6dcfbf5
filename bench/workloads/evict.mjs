import { meter } from '../harness/meter.mjs';
import { withProcesses } from '../harness/processes.mjs';
import { warmUp } from './crowd.mjs';

/** The source changes between them, and the key is evicted. */
const [OLD, NEW] = [1, 2];

export const evict = {
  name: 'evict',
  title: 'An eviction during a load',
  about:
    'One process loads, for 200 ms, what the source has. 50 ms into that the source changes, and another process evicts the ' +
    'key. Asked after that, and asked once more after the first load has ended, both processes should answer the new value.',
  full: { loadTime: 200, warmUps: 200 },
  quick: { loadTime: 200, warmUps: 100 },
  needs: ['evict'],
  multiProcess: true,
  async measure({ redis, system, round, numbers }) {
    await redis.empty();
    const { loadTime, warmUps } = numbers;
    return withProcesses(2, redis, system, {}, async ([loading, evicting]) => {
      await warmUp([loading, evicting], warmUps);
      await evicting.call('evict', { key: 'another' });
      const key = `evicted ${round}`;
      const both = (options) =>
        Promise.all([evicting, loading].map((process) => process.call('ask', { key, ...options })));
      const metered = await meter(redis, [loading, evicting], async () => {
        const began = loading.told('loading');
        const first = loading.call('ask', { key, loadTime, version: OLD, tell: true });
        await began;
        await new Promise((resolve) => setTimeout(resolve, 50));
        const took = await evicting.call('evict', { key });
        const after = await both({ version: NEW });
        await first;
        const later = await both({ version: NEW });
        return { took, after, later };
      });
      const { took, after, later } = metered.result;
      const [staleAfter, staleLater] = [after, later].map(countOld);
      const errors = [...after, ...later].flatMap(({ error }) => error ?? []);
      return {
        after: outcome(staleAfter),
        later: outcome(staleLater),
        answered: Math.max(...after.map(({ askedAt, answeredAt }) => answeredAt - askedAt)),
        took,
        commands: metered.commands,
        redisCpu: metered.redisCpu / 1000,
        cpu: metered.cpu / 1000,
        faults: [
          ...(staleAfter > 0 ? [`old value right after the eviction, in ${staleAfter} of 2 processes`] : []),
          ...(staleLater > 0 ? [`old value stored for good, in ${staleLater} of 2 processes`] : []),
          ...errors,
        ],
      };
    });
  },
  columns: [
    ['after', 'asked after the eviction'],
    ['later', 'asked after the load'],
    ['answered', 'answered within ms', 1],
    ['took', 'evict ms', 1],
    ['commands', 'commands', 0],
    ['redisCpu', 'Redis CPU ms', 1],
    ['cpu', 'CPU ms', 1],
  ],
};

function countOld(answers) {
  return answers.filter(({ version }) => version === OLD).length;
}

function outcome(stale) {
  return stale > 0 ? 'OLD' : 'new';
}
