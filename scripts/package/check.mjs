// `npm run check:package`: what users get. publint and attw find nothing, every file is meant to be there, and nothing grows
// by accident.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup.mjs';
import { pack } from './pack.mjs';

/** Bytes, unpacked, without source maps. */
const LIMIT = 280_000;

const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const { tarball, files } = pack();
const entries = Object.values(exports).filter((entry) => entry.types);
const faults = [...checkFiles(), ...checkSize(), ...runTool('publint', ['run', tarball, '--strict']), ...runAttw()];
for (const fault of faults) console.error(fault);
process.exitCode = faults.length === 0 ? 0 : 1;

/** What an entry's code and declarations share is in `shared`, which is there when there is more than one entry. */
function checkFiles() {
  const stems = entries.map((entry) => entry.default.replace(/^\.\/(.*)\.js$/, '$1'));
  if (stems.length > 1) stems.push('dist/lib/shared');
  const code = stems.flatMap((stem) => [`${stem}.js`, `${stem}.js.map`, `${stem}.d.ts`]);
  const wanted = new Set(['package.json', 'README.md', 'LICENSE', 'CHANGELOG.md', ...code]);
  const packed = new Set(files.map(({ path }) => path));
  return [
    ...[...packed].filter((path) => !wanted.has(path)).map((path) => `A stray file is packed: ${path}`),
    ...[...wanted].filter((path) => !packed.has(path)).map((path) => `A file is missing: ${path}`),
  ];
}

function checkSize() {
  const kinds = { code: /\.js$/, declarations: /\.d\.ts$/, 'readme and the rest': /^[^/]+$/, 'source maps': /\.map$/ };
  const sum = (some) => some.reduce((total, { size }) => total + size, 0);
  for (const [kind, pattern] of Object.entries(kinds)) {
    console.log(`${String(sum(files.filter(({ path }) => pattern.test(path)))).padStart(9)} bytes  ${kind}`);
  }
  const size = sum(files.filter(({ path }) => !path.endsWith('.map')));
  console.log(`${String(size).padStart(9)} bytes  unpacked without source maps, of ${LIMIT}`);
  return size <= LIMIT ? [] : [`The package is larger than ${LIMIT} bytes, unpacked and without its source maps.`];
}

/** The profile: the package is ES modules only, which Node 20.19 and later can `require`. */
function runAttw() {
  return runTool('@arethetypeswrong/cli', [tarball, '--profile', 'esm-only', '--format', 'ascii']);
}

function runTool(name, args) {
  const folder = join(root, 'node_modules', name);
  const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = typeof bin === 'string' ? bin : Object.values(bin)[0];
  const { status } = spawnSync(process.execPath, [join(folder, file), ...args], { cwd: root, stdio: 'inherit' });
  return status === 0 ? [] : [`${name} found what stands above.`];
}
