/** docs/architecture.md names every file of lib/core, each once. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';

const root = join(import.meta.dirname, '../..');

test('the files of lib/core', () => {
  const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8');
  const [, table = ''] = /^`core` reads from the top in this order:$(.*?)^No cache/ms.exec(page) ?? [];
  const named = [...table.matchAll(/`([\w-]+\.ts)`/g)].map(([, file = '']) => file);
  expect(named.sort()).toEqual(readdirSync(join(root, 'lib/core')).sort());
});
