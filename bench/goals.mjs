import { format } from './harness/table.mjs';
import { BASELINE } from './systems.mjs';

// What this library set out to reach, each held against a run. `of(find)` gives the numbers to show and whether they will
// do; `find(system, variant)` is a row of the workload's table.

const CALLERS = '64 callers';

export const GOALS = [
  {
    workload: 'hits',
    goal: `hits on 10,000 keys, 64 callers, no near cache: ≥ 1.6 × ${BASELINE}`,
    of: (find) => atLeast(find('ours', CALLERS).ratio, 1.6),
  },
  {
    workload: 'hits',
    goal: `their CPU: ≤ 0.6 × that of ${BASELINE}`,
    of: (find) => atMost(find('ours', CALLERS).cpuPerOperation / find(BASELINE, CALLERS).cpuPerOperation, 0.6),
  },
  {
    workload: 'hits',
    goal: 'what the decorator adds to them: < 1 µs of CPU',
    of: (find) =>
      atMost(find('ours-decorator', CALLERS).cpuPerOperation - find('ours', CALLERS).cpuPerOperation, 1, ' µs'),
  },
  {
    workload: 'hits',
    goal: 'near hits on 10,000 keys: ≥ 0.6 × `fetch` of lru-cache',
    of: (find) => atLeast(find('ours-near', CALLERS).perSecond / find('lru-cache', CALLERS).perSecond, 0.6),
  },
  {
    workload: 'hot',
    goal: `one hot key, 64 callers, no near cache: ≥ 9 × ${BASELINE}`,
    of: (find) => atLeast(find('ours').ratio, 9),
  },
  {
    workload: 'sequential',
    goal: `sequential hits: ≥ 0.92 × ${BASELINE}`,
    of: (find) => atLeast(find('ours').ratio, 0.92),
  },
  {
    workload: 'miss',
    goal: `misses, under the distributed lock: ≥ 0.85 × GET and SET of ${BASELINE}`,
    of: (find) => atLeast(find('ours').ratio, 0.85),
  },
  ...contended('stampede', 'stampede of 4 × 250 callers', 30),
  ...contended('slow-loader', 'loader of three leases, 4 × 25 callers', 40),
  {
    workload: 'leader-killed',
    goal: "leader killed: next load ≤ 20 ms after the lease's end",
    of: (find) => atMost(find('ours').afterLease, 20, ' ms'),
  },
  ...['1 caller', '16 callers'].map((variant) => ({
    workload: 'locks',
    goal: `uncontended locks, ${variant}: ≥ 1.5 × the better of redis-semaphore and redlock`,
    of(find) {
      const peers = ['redis-semaphore', 'redlock', 'sesamecare-redlock'].map((name) => find(name, variant).perSecond);
      return atLeast(find('ours', variant).perSecond / Math.max(...peers), 1.5);
    },
  })),
  {
    workload: 'memory',
    goal: 'growth after 100,000 keys: none (within what a heap varies by, 5 bytes a key)',
    of: (find) => atMost(find('ours').bytesPerKey, 5, ' bytes a key'),
  },
];

function contended(workload, what, commands) {
  return [
    {
      workload,
      goal: `${what}: 1 load, in every round`,
      of: (find) => {
        const { loads } = find('ours').worst;
        return { measured: `${loads} at most`, met: loads === 1 };
      },
    },
    {
      workload,
      goal: `${what}: last caller ≤ 6 ms after the load ended`,
      of: (find) => atMost(find('ours').afterLoad, 6, ' ms'),
    },
    {
      workload,
      goal: `${what}: ≤ ${commands} commands in all`,
      of: (find) => atMost(find('ours').commands, commands),
    },
  ];
}

function atLeast(number, least) {
  return { measured: `${format(number, 2)} ×`, met: number >= least };
}

function atMost(number, most, unit = '') {
  return { measured: format(number, Number.isInteger(number) ? 0 : 2) + unit, met: number <= most };
}
