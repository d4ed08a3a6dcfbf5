import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';

const root = join(import.meta.dirname, '../..');

test('the same suite passes in vitest', async () => {
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const config = join(import.meta.dirname, 'vitest.config.mjs');
  const args = [vitest, 'run', '--config', config, '--reporter', 'json'];
  // Node's own conditions: without those that jest has set.
  const { NODE_OPTIONS: _, VITEST: __, ...env } = process.env;
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, env });
  const { success, numPassedTests, numFailedTests } = JSON.parse(stdout);
  expect({ success, numFailedTests }).toEqual({ success: true, numFailedTests: 0 });
  expect(numPassedTests).toBeGreaterThan(10);
}, 120_000);
