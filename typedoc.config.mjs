import { readFileSync } from 'node:fs';

const { exports } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));

/** @type {Partial<import('typedoc').TypeDocOptions>} */
const config = {
  entryPoints: Object.values(exports)
    .filter((entry) => entry.types)
    .map((entry) => entry.types.replace('./dist/', '').replace(/\.d\.ts$/, '.ts')),
  tsconfig: 'lib/tsconfig.lib.json',
  out: 'dist/api',
  readme: 'none',
  excludeInternal: true,
  excludePrivate: true,
  treatWarningsAsErrors: true,
  treatValidationWarningsAsErrors: true,
  disableSources: true,
  // Not `notExported`: types that public ones are made of need no public name.
  validation: { notExported: false, invalidLink: true, invalidPath: true, notDocumented: true },
  requiredToBeDocumented: ['Class', 'Interface', 'TypeAlias', 'Function', 'Variable', 'Enum'],
};

export default config;
