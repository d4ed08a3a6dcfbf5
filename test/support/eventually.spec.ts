import { expect, test } from '@jest/globals';
import { eventually } from './eventually.js';

test('returns what the check returned once it holds, and takes errors for "not yet"', async () => {
  let calls = 0;
  const check = () => {
    calls += 1;
    if (calls === 1) throw new Error('too early');
    return calls === 3 && 'done';
  };
  expect(await eventually(check, { every: 1 })).toBe('done');
});

test('fails with the last error when it never holds', async () => {
  const check = () => Promise.reject(new Error('still away'));
  await expect(eventually(check, { within: 30 })).rejects.toThrow('did not hold within 30 ms: still away');
});
