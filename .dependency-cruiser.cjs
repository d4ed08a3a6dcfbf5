// Imports point one way: nest → redis, memory → core. `npm run check:imports`
const NEST = '(^|node_modules/)@nestjs/';
const IOREDIS = '(^|node_modules/)ioredis';

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'core-knows-no-other-folder',
      comment: 'The core is the story alone; stores and Nest are handed to it.',
      severity: 'error',
      from: { path: '^lib/core/' },
      to: { path: '^lib/', pathNot: '^lib/core/' },
    },
    {
      name: 'core-knows-no-framework',
      comment: 'Neither Nest nor ioredis, not even a type of theirs.',
      severity: 'error',
      from: { path: '^lib/core/' },
      to: { path: [NEST, IOREDIS] },
    },
    {
      name: 'stores-know-only-the-core',
      severity: 'error',
      from: { path: '^lib/(redis|memory)/' },
      to: { path: '^lib/', pathNot: ['^lib/core/', '^lib/$1/'] },
    },
    {
      name: 'nest-stays-in-its-folder',
      comment: 'lib/nest is the only folder that imports @nestjs; lib/testing hands out a module of its.',
      severity: 'error',
      from: { path: '^lib/', pathNot: '^lib/(nest|testing)/' },
      to: { path: NEST },
    },
    {
      name: 'testing-is-an-entry-of-its-own',
      comment: 'What tests import is no part of what applications load.',
      severity: 'error',
      from: { path: '^lib/', pathNot: '^lib/testing/' },
      to: { path: '^lib/testing/' },
    },
    {
      name: 'ioredis-stays-in-its-folder',
      severity: 'error',
      from: { path: '^lib/', pathNot: '^lib/redis/' },
      to: { path: IOREDIS },
    },
    {
      name: 'the-package-brings-what-it-imports',
      comment: 'Only Node itself, dependencies and peers: whoever installs the package has no dev dependency of ours.',
      severity: 'error',
      from: { path: '^lib/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown', 'unknown'], dependencyTypesNot: ['npm-peer'] },
    },
    {
      name: 'no-cycles',
      comment: 'Not even of types: a file can be read without those that use it.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'everything-imported-exists',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    // Types count too.
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['types', 'import', 'node', 'default'] },
  },
};
