import { test } from '@jest/globals';
import fc, { type Arbitrary, type Scheduler } from 'fast-check';
import type { CacheOptions } from '../../lib/core/options.js';
import { settle } from '../support/clock.js';
import { type Action, faulty, faultyNear, healthy } from './actions.js';
import { World } from './world.js';

/**
 * Random schedules of several processes against the invariants (the README's guarantees), checked from outside by `History`:
 *
 * 1. No two loads overlap, unless a lease had ended.
 * 2. Late writes lose.
 * 3. A call that starts after an eviction resolved never gets what was loaded before that was called.
 * 4. No lock outlives its attempt.
 * 5. Every call settles.
 *
 * With near caches, 3 holds in the process that evicted, and in the others once they are told; and no value outlives its freshness.
 *
 * A counterexample prints its seed and path; `FC_SEED=… FC_PATH=… npx jest test/model` plays it again. `FC_RUNS` is how many
 * schedules are tried, `FC_TRACE=1` prints the history of a failure.
 */
const RUNS = Number(process.env['FC_RUNS'] ?? 1_000);
/** Ten seconds will do on an idle machine; whoever finds something needs more, to make it small. */
const TIME_LIMIT = Math.max(10 * 60_000, RUNS * 300);

test(
  'invariants hold in every schedule while the store works',
  () => check(healthy, { commandTimeout: '10h', defaults: { lease: '10h' } }, RUNS),
  TIME_LIMIT,
);

test(
  'invariants hold in every schedule when commands get lost, come late, leases end and processes die',
  () => check(faulty, {}, RUNS),
  TIME_LIMIT,
);

test(
  'invariants hold in every schedule with near caches, whose messages come late too',
  () => check(faultyNear, { near: { max: 10 } }, RUNS),
  TIME_LIMIT,
);

async function check(actions: Arbitrary<Action[]>, options: CacheOptions, numRuns: number): Promise<void> {
  const run = fc.asyncProperty(
    schedulers(),
    fc.integer({ min: 2, max: 3 }),
    actions,
    async (scheduler, processes, plan) => {
      const world = new World(scheduler, processes, options);
      await world.play(plan);
      const { violations, log } = world.history;
      if (violations.length === 0) return;
      throw new Error([...violations, ...(process.env['FC_TRACE'] ? log : [])].join('\n'));
    },
  );
  await fc.assert(run, { numRuns, ...replayed() });
}

/** Between two tasks of the scheduler everything comes to rest, `nextTick` included. */
function schedulers(): Arbitrary<Scheduler> {
  return fc.scheduler({
    act: async (run) => {
      await run();
      await settle();
    },
  });
}

function replayed(): { seed?: number; path?: string } {
  const { FC_SEED: seed, FC_PATH: path } = process.env;
  return { ...(seed && { seed: Number(seed) }), ...(path && { path }) };
}
