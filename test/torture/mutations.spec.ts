import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { MUTATIONS } from './mutations.mjs';

const lib = join(import.meta.dirname, '../../lib');
const readme = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8');

test.each(MUTATIONS.map(({ name, file, from }) => [name, file, from] as const))(
  '%s: is in the code, and in the list',
  (name, file, from) => {
    expect(readFileSync(join(lib, file), 'utf8').split(from)).toHaveLength(2);
    expect(readme).toContain(`| ${name} | \`${file}\` |`);
  },
);
