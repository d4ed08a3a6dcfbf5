/** The benchmark runs end to end, with two systems that need no package of the peers'. Its numbers are not looked at. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

const bench = join(import.meta.dirname, '../../bench/bench.mjs');
const run = (...args: string[]) => promisify(execFile)(process.execPath, [bench, ...args], { timeout: 240_000 });
const folder = mkdtempSync(join(tmpdir(), 'bench-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Result {
  readonly rows: readonly { readonly system: string; readonly faults: string[]; readonly [field: string]: unknown }[];
}

const resultOf = (workload: string): Result => JSON.parse(readFileSync(join(folder, `${workload}.json`), 'utf8'));
const rowOf = (workload: string, name: string) => resultOf(workload).rows.find(({ system }) => system === name);

describe('a run', () => {
  let printed: string;
  beforeAll(async () => {
    const systems = ['--only', 'ioredis,ours', '--no-setup', '--quick', '--count', '640', '--out', folder];
    printed = (await run('hot', 'stampede', ...systems)).stdout;
  }, 240_000);

  test('prints a table of each workload', () => {
    expect(printed).toMatch(/## Hits on one hot key.*\| ioredis .*\| ours /s);
    expect(printed).toMatch(/## Stampede on a cold key.*\| ioredis .*\| ours /s);
  });

  test('counts what a call costs', () => {
    expect(rowOf('hot', 'ioredis')).toMatchObject({ ratio: 1, commandsPerOperation: 1, faults: [] });
    // Each of 64 callers has ten calls, and those of one tick share a read.
    expect(rowOf('hot', 'ours')?.['commandsPerOperation']).toBeLessThan(1);
    expect(rowOf('hot', 'ours')?.['perSecond']).toBeGreaterThan(0);
  });

  test('shows a stampede as the fault that it is, and one load as none', () => {
    expect(rowOf('stampede', 'ioredis')?.faults).toEqual([expect.stringMatching(/^\d+ loads$/)]);
    expect(rowOf('stampede', 'ours')).toMatchObject({ loads: 1, faults: [] });
  });

  test('draws charts', () => {
    expect(readFileSync(join(folder, 'stampede.svg'), 'utf8')).toMatch(/^<svg .*ours.*<\/svg>\n$/s);
  });

  test('would be written to docs/performance.md', async () => {
    await expect(run('docs', '--check', '--out', folder)).rejects.toMatchObject({
      stderr: expect.stringContaining('docs/performance.md is not what bench/results says'),
    });
  });
});

test('docs/performance.md has the numbers of bench/results', async () => {
  await expect(run('docs', '--check')).resolves.toMatchObject({ stderr: '' });
});
