import { bulk } from './bulk.mjs';
import { evict } from './evict.mjs';
import { expiry } from './expiry.mjs';
import { hits, hot, sequential, sizes } from './hits.mjs';
import { leaderKilled } from './leader-killed.mjs';
import { locks, queue } from './locks.mjs';
import { memory } from './memory.mjs';
import { miss } from './miss.mjs';
import { slowLoader, stampede } from './stampede.mjs';
import { start } from './start.mjs';
import { trace } from './trace.mjs';

/**
 * What is measured, in the order of a whole run. A workload has
 *
 *   name, title, about   for people
 *   full, quick          its numbers; without `quick`, --quick leaves it out
 *   needs                the methods of an adapter that it calls
 *   multiProcess         whether it says nothing of what needs no Redis
 *   measure(context)     one sample: an object of numbers and texts, `faults` among them; or several, each with a `variant`
 *   columns              of its table: [field, title, digits, 'worst' for the greatest in place of the median]
 *   ratio                { of: field, to: system }: how many times what that system does, in the same round
 *   chart                { field, title, logarithmic }
 */
export const WORKLOADS = [
  hot,
  hits,
  sequential,
  sizes,
  miss,
  trace,
  stampede,
  slowLoader,
  expiry,
  leaderKilled,
  evict,
  locks,
  queue,
  bulk,
  memory,
  start,
];
