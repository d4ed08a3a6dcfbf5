/** The README's table of options names every option there is, and the defaults that the code has. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { DEFAULTS } from '../../lib/core/options.js';

const readme = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8');

/** Option to default, as the table has them: the first and the second column. */
const documented = new Map(
  [...readme.matchAll(/^\| `(\w+)` \| ([^|]+) \|/gm)].map(([, option = '', value = '']) => [option, value.trim()]),
);

const WRITTEN: Partial<Record<keyof typeof DEFAULTS, string>> = { codec: 'JSON' };

test.each(Object.entries(DEFAULTS))('%s', (option, value) => {
  const written = WRITTEN[option as keyof typeof DEFAULTS];
  expect(documented.get(option)).toBe(written ?? `\`${typeof value === 'string' ? `'${value}'` : value}\``);
});

test('no option is in the table that the code does not have', () => {
  const known = new Set([
    ...Object.keys(DEFAULTS),
    'connection',
    'store',
    'logger',
    'defaults',
    'connectTimeout',
    'profiles',
    'errorCodec',
    'clock',
    'onBoot',
  ]);
  expect([...documented.keys()].filter((option) => !known.has(option))).toEqual([]);
});
