// How much CPU other processes used while we measured; on Linux only, elsewhere it is 0. A sample during which they were
// busy is taken again, twice at most, and the quietest one is kept.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { sum } from './statistics.mjs';

/** USER_HZ is 100 on every usual Linux. */
const TICK = 10;
const QUIET = 0.1;
const LONGEST_WAIT = 20_000;

/** Milliseconds that a run may spend in waiting for a quiet machine. */
let patience = 15 * 60_000;

function busyTicks() {
  const [line] = readFileSync('/proc/stat', 'utf8').split('\n', 1);
  const [user, nice, system, , , irq, softirq, steal] = line.trim().split(/\s+/).slice(1).map(Number);
  return user + nice + system + irq + softirq + steal;
}

function ticksOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return Number(fields[11]) + Number(fields[12]);
  } catch {
    return 0;
  }
}

/** @returns a function that says how many cores processes other than these, and this one, have used since */
function watch(pids) {
  const own = () => sum([process.pid, ...pids].map(ticksOf));
  try {
    const [busy, ours, start] = [busyTicks(), own(), performance.now()];
    return () => Math.max(0, ((busyTicks() - busy - (own() - ours)) * TICK) / (performance.now() - start));
  } catch {
    return () => 0;
  }
}

async function untilQuiet(pids) {
  const start = performance.now();
  const end = start + Math.min(LONGEST_WAIT, patience);
  for (;;) {
    const used = watch(pids);
    await sleep(200);
    if (used() <= QUIET || performance.now() > end) break;
  }
  const waited = performance.now() - start;
  if (waited > 400) patience -= waited;
}

/** Takes a sample, `measure(attempt)`, when the machine is quiet; with `hurry` at once, and once. */
export async function quietest({ pids, hurry, limit = 0.12 }, measure) {
  let best;
  for (let attempt = 0; attempt < (hurry ? 1 : 3); attempt++) {
    if (!hurry) await untilQuiet(pids);
    const used = watch(pids);
    const sample = await measure(attempt);
    sample.otherCpu = used();
    if (!best || sample.otherCpu < best.otherCpu) best = sample;
    if (best.otherCpu <= limit) break;
  }
  return best;
}
