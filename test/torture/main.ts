/** What `npm run torture` runs; `scripts/torture.mjs` builds it. */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { check, describeFinding, type Finding, summarise } from './check.js';
import { run } from './director.js';
import type { History } from './history.js';
import { describePlan, planOf, type Topology } from './plan.js';

export interface Paths {
  readonly worker: string;
  readonly library?: string;
}

/** @returns the exit code: 1 when something was found */
export async function main(args: readonly string[], paths: Paths): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seed: { type: 'string' },
      seeds: { type: 'string' },
      seconds: { type: 'string', default: '60' },
      topology: { type: 'string', default: 'standalone' },
      /** Where to write the whole history of the last run. */
      history: { type: 'string' },
      library: { type: 'string' },
      /** A history that was written before, to be checked again. */
      check: { type: 'string' },
    },
  });
  if (values.check) return report(JSON.parse(readFileSync(values.check, 'utf8')) as History) ? 0 : 1;
  const topology = values.topology as Topology;
  if (topology !== 'standalone' && topology !== 'sentinel') throw new TypeError('--topology is standalone or sentinel');
  const first = values.seed === undefined ? Math.floor(Math.random() * 1_000_000) : wholeNumber('seed', values.seed);
  const count = values.seeds === undefined ? (values.seed === undefined ? 10 : 1) : wholeNumber('seeds', values.seeds);
  const failed: number[] = [];
  // The servers that tests start keep no process alive.
  const alive = setInterval(() => {}, 1_000);
  for (let seed = first; seed < first + count; seed++) {
    const plan = planOf(seed, wholeNumber('seconds', values.seconds), topology);
    console.log(describePlan(plan));
    const history = await run(plan, { ...paths, ...(values.library && { library: values.library }) });
    if (values.history) writeFileSync(values.history, JSON.stringify(history));
    if (!report(history)) failed.push(seed);
  }
  clearInterval(alive);
  if (failed.length === 0) return 0;
  console.log(`Found something with: ${failed.map((seed) => `--seed ${seed}`).join(', ')}`);
  return 1;
}

/** @returns whether nothing was found */
function report(history: History): boolean {
  const findings = check(history);
  console.log(`  ${summarise(history)}`);
  for (const finding of findings.slice(0, 20)) console.log(describeFinding(history, finding));
  if (findings.length > 0) console.log(`  counts: ${countsOf(findings)}`);
  console.log(findings.length === 0 ? '  nothing found\n' : `  ${findings.length} found\n`);
  return findings.length === 0;
}

function countsOf(findings: readonly Finding[]): string {
  const counts = new Map<string, number>();
  for (const { check } of findings) counts.set(check, (counts.get(check) ?? 0) + 1);
  return [...counts].map(([name, count]) => `${name} ${count}`).join(', ');
}

function wholeNumber(name: string, text: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number > 0) return number;
  throw new TypeError(`--${name} must be a whole number above 0, and not ${text}`);
}
