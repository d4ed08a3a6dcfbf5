import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup.mjs';

const template = join(import.meta.dirname, 'app');

/** What `nest new` of Nest 11 and 12 writes to tsconfig.json, as far as it bears on the package. */
const COMPILER_OPTIONS = {
  module: 'nodenext',
  moduleResolution: 'nodenext',
  esModuleInterop: true,
  isolatedModules: true,
  emitDecoratorMetadata: true,
  experimentalDecorators: true,
  target: 'ES2023',
  types: ['node'],
  rootDir: 'src',
  outDir: 'dist',
  strict: true,
};

/** What `nest new` of Nest 11 writes to package.json, and the setting that the docs give. */
const JEST = {
  moduleFileExtensions: ['js', 'json', 'ts'],
  rootDir: 'src',
  testRegex: '.*\\.spec\\.ts$',
  transform: { '^.+\\.(t|j)s$': 'ts-jest' },
  testEnvironment: 'node',
  ...documentedJestSetting(),
};

const nest = (version) =>
  ['common', 'core', 'platform-express', 'platform-fastify', 'testing'].map((name) => `@nestjs/${name}@${version}`);

/** The applications: each a folder of its own, with the newest of what is named. */
export const APPS = [
  {
    name: 'Nest 11, CommonJS, ioredis 5',
    folder: 'nest11',
    packages: [...nest('^11.0.0'), 'ioredis@^5.4.0', 'reflect-metadata@^0.2.2', 'rxjs@^7.8.1'],
    tools: [
      'typescript@^5.9.0',
      '@types/node@^20.0.0',
      '@types/express@^5.0.0',
      'jest@^30.0.0',
      'ts-jest@^29.4.0',
      '@types/jest@^30.0.0',
    ],
    manifest: { jest: JEST },
    unitTests: ['jest/bin/jest.js'],
    typeChecks: [
      { name: 'bundler', options: { module: 'esnext', moduleResolution: 'bundler' } },
      { name: 'node10', options: { module: 'commonjs', moduleResolution: 'node10' } },
      // CommonJS there may not require ES modules; TypeScript says so, and Node 20.19 does it all the same.
      { name: 'node16', options: { module: 'node16', moduleResolution: 'node16' }, error: 'TS1479' },
    ],
  },
  {
    name: 'Nest 12, ES modules, ioredis 6',
    folder: 'nest12',
    packages: [...nest('^12.0.0'), 'ioredis@^6.0.0', 'reflect-metadata@^0.2.2', 'rxjs@^7.8.1'],
    tools: ['typescript@^6.0.0', '@types/node@^20.0.0', '@types/express@^5.0.0', 'vitest@^4.0.0'],
    manifest: { type: 'module' },
    unitTests: ['vitest/vitest.mjs', 'run', '--globals'],
    typeChecks: [
      { name: 'bundler', options: { module: 'esnext', moduleResolution: 'bundler' } },
      { name: 'node16', options: { module: 'node16', moduleResolution: 'node16' } },
    ],
  },
];

/** The oldest of every peer that package.json allows. */
export const OLDEST = {
  name: 'the oldest peers',
  folder: 'oldest',
  // This rxjs hides its types from newer ones.
  options: { module: 'commonjs', moduleResolution: 'node10' },
  // Nest's adapter for Fastify, which asked for Nest 10 by mistake at first, is the first that does not.
  packages: [
    ...nest('11.0.0').filter((name) => !name.includes('fastify')),
    '@nestjs/platform-fastify@11.0.3',
    'ioredis@5.4.0',
    'reflect-metadata@0.1.13',
    'rxjs@7.2.0',
  ],
  tools: ['typescript@5.8', '@types/node@^20.0.0', '@types/express@^5.0.0'],
  manifest: {},
  typeChecks: [],
};

/** Makes the folder of an application, and installs what it needs, and the tarball last, as a user does. */
export function makeApp(app, { base, tarball }) {
  const folder = join(base, app.folder);
  mkdirSync(folder);
  cpSync(template, folder, { recursive: true });
  const config = (name, compilerOptions) =>
    writeJson(join(folder, name), { compilerOptions, include: ['src'], exclude: ['**/*.spec.ts'] });
  config('tsconfig.json', { ...COMPILER_OPTIONS, ...app.options });
  for (const { name, options } of app.typeChecks) {
    config(`tsconfig.${name}.json`, { ...COMPILER_OPTIONS, ...options, noEmit: true });
  }
  writeJson(join(folder, 'package.json'), { name: app.folder, version: '1.0.0', private: true, ...app.manifest });
  npm(folder, ['install', ...app.packages, ...app.tools]);
  npm(folder, ['install', tarball]);
  return folder;
}

/** Installs a version of Node, which npm has as a package of each platform, and gives the path of its binary. */
export function installNode(major, base) {
  const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
  const folder = join(base, `node${major}`);
  mkdirSync(folder);
  writeJson(join(folder, 'package.json'), { name: 'runtime', private: true });
  npm(folder, ['install', `${name}@${major}`]);
  return join(folder, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
}

function npm(folder, args) {
  // `--ignore-scripts`: nothing here needs one, and some download what may not be reachable.
  const flags = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline', '--loglevel', 'error'];
  const { status, stderr } = spawnSync('npm', [...args, ...flags], {
    cwd: folder,
    encoding: 'utf8',
    shell: process.platform === 'win32',
  });
  if (status === 0) return;
  const unreachable = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|network/i.test(stderr);
  const reason = unreachable
    ? 'The npm registry is not reachable, and what is needed is not in the cache of npm: the matrix can not run.'
    : `npm ${args.join(' ')} failed.`;
  throw new Error(`${reason}\n${stderr}`);
}

function documentedJestSetting() {
  const page = readFileSync(join(root, 'docs/install.md'), 'utf8');
  const sample = /^## Jest\n.*?^```json\n(.*?)^```/ms.exec(page)?.[1];
  if (!sample) throw new Error('docs/install.md has no sample of JSON under "Jest".');
  return JSON.parse(sample).jest;
}

function writeJson(file, value) {
  writeFileSync(file, JSON.stringify(value, undefined, 2));
}
