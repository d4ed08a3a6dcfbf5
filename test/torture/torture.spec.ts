/** The torture suite in short: `npm run torture` does it for minutes. The README here says what it does. */
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { check, describeFinding, summarise } from './check.js';
import { run } from './director.js';
import { describePlan, planOf } from './plan.js';

const SEED = 12;
const SECONDS = 20;

test('four processes and a director who breaks what there is: no invariant does', async () => {
  const plan = planOf(SEED, SECONDS, 'standalone');
  const worker = fileURLToPath(new URL('./torture.worker.mjs', import.meta.url));
  const history = await run(plan, { worker });
  const findings = check(history).map((finding) => describeFinding(history, finding));
  // What a reader needs who sees it fail.
  if (findings.length > 0) findings.unshift(describePlan(plan), summarise(history));
  expect(findings).toEqual([]);
  // Something has happened: calls, loads, writes and locks of each kind, and faults.
  const kinds = new Set(history.calls.map(({ profile }) => profile));
  expect(kinds.size).toBe(history.profiles.length);
  expect(new Set(history.holds.map(({ profile }) => profile)).size).toBe(history.lockProfiles.length);
  expect(new Set(history.writes.map(({ by }) => by)).size).toBe(3);
  const failed = history.faults.filter(({ is }) => is === 'renewal failed');
  expect(history.faults.length - failed.length).toBeGreaterThanOrEqual(plan.steps.length / 2);
  // A renewal is known by how it looks on its way: had that changed, none would fail, and none would be lost.
  expect(failed).not.toEqual([]);
}, 180_000);
