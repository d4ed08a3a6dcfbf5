/** The tables of the README and of docs/options.md name every option there is, and the defaults that the code has. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { DEFAULTS } from '../../lib/core/options.js';

const WRITTEN: Partial<Record<keyof typeof DEFAULTS, string>> = { codec: 'JSON' };

/** Those that have no default that could be written in a cell. */
const OTHERS = ['connection', 'store', 'logger', 'defaults', 'profiles', 'errorCodec', 'clock'];

/** Option and default, as the tables of a page have them: the first and the second column. */
function rowsIn(text: string): (readonly [option: string, value: string])[] {
  const rows = text.matchAll(/^\| `(\w+)` \| ([^|]+) \| [^|\n]*(?:\\\|[^|\n]*)*\|$/gm);
  return [...rows].map(([, option = '', value = '']) => [option, value.trim()] as const);
}

describe.each(['README.md', 'docs/options.md'])('%s', (page) => {
  const text = readFileSync(join(import.meta.dirname, '../..', page), 'utf8');
  const documented = new Map(rowsIn(text));

  test.each(Object.entries(DEFAULTS))('%s', (option, value) => {
    const written = WRITTEN[option as keyof typeof DEFAULTS];
    expect(documented.get(option)).toBe(written ?? `\`${typeof value === 'string' ? `'${value}'` : value}\``);
  });

  test.each(OTHERS)('%s', (option) => {
    expect(documented.has(option)).toBe(true);
  });

  test('has one row for each in a table', () => {
    const names = text.split(/\n\n/).map((block) => rowsIn(block).map(([option]) => option));
    expect(names.flatMap((table) => table.filter((name, i) => table.indexOf(name) !== i))).toEqual([]);
  });

  test('has no option that the code does not have', () => {
    const known = new Set([...Object.keys(DEFAULTS), ...OTHERS]);
    expect([...documented.keys()].filter((option) => !known.has(option))).toEqual([]);
  });
});
