/** What the docs say is tested names its spec, and that exists. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { rightsFor } from '../../lib/redis/rights.js';

const root = join(import.meta.dirname, '../..');
const read = (page: string) => readFileSync(join(root, page), 'utf8');
const SPEC = /`(test\/[\w/.-]+\.spec\.ts)`/g;

test.each(['README.md', ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`)])('%s', (page) => {
  const named = [...read(page).matchAll(SPEC)].map(([, path = '']) => path);
  expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test('each fault in the table of failure modes names its spec', () => {
  const [, faults = ''] = /^## Faults$(.*?)^## /ms.exec(read('docs/failure-modes.md')) ?? [];
  const rows = faults
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .slice(2);
  expect(rows.length).toBeGreaterThan(20);
  expect(rows.filter((row) => !row.match(SPEC))).toEqual([]);
});

test('docs/redis.md grants the rights that a refused start asks for', () => {
  const [, granted = ''] = /~stampede:\* resetchannels &stampede:\* -@all (.*)$/m.exec(read('docs/redis.md')) ?? [];
  expect(granted).toBe(rightsFor({ replicas: 0, readFrom: 'primary' }));
  const all = rightsFor({ replicas: 1, readFrom: 'replica' });
  expect(all.slice(granted.length)).toBe(' +wait +readonly +readwrite');
});
