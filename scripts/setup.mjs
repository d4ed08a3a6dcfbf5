import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of package.json. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Checks the version of Node and, only when the installed packages differ from package-lock.json, runs `npm ci`; in the
 * folder of another package than the project's, if one is given.
 */
export function ensureDependencies(folder = root) {
  const { engines } = readJson(folder, 'package.json');
  if (!satisfies(process.versions.node, engines.node)) {
    throw new Error(`This project needs Node ${engines.node}; this is Node ${process.versions.node}.`);
  }
  if (isInstalled(folder)) return;
  console.log(`Installing the dependencies of ${relative(root, join(folder, 'package-lock.json'))} (npm ci).`);
  const windows = process.platform === 'win32';
  // `--include=dev`: under NODE_ENV=production npm would leave out the tools, at every run anew.
  const { status } = spawnSync('npm', ['ci', '--include=dev'], { cwd: folder, stdio: 'inherit', shell: windows });
  if (status !== 0) throw new Error('npm ci failed; its own message stands above.');
}

/**
 * Whether node_modules holds what package-lock.json names. npm writes what it installed to a hidden lockfile; times of
 * files tell nothing, because a checkout or a copy renews them.
 */
function isInstalled(folder) {
  let installed;
  try {
    installed = readJson(folder, 'node_modules/.package-lock.json').packages;
  } catch {
    return false;
  }
  const { '': _project, ...wanted } = readJson(folder, 'package-lock.json').packages;
  const same = (path) =>
    installed[path]?.version === wanted[path]?.version && installed[path]?.integrity === wanted[path]?.integrity;
  // An optional package may be absent: it is for another platform.
  const missing = Object.keys(wanted).some((path) => !same(path) && !(wanted[path].optional && !installed[path]));
  return !missing && Object.keys(installed).every((path) => path in wanted);
}

/** Enough of semver for `engines`: `^a.b.c` and `>=a.b.c`, joined by `||`. */
function satisfies(version, range) {
  const actual = version.split('.').map(Number);
  return range.split('||').some((part) => {
    const [, operator, wanted] = /^\s*(\^|>=)\s*([\d.]+)\s*$/.exec(part) ?? [];
    if (!operator)
      throw new Error(`package.json: the engines range "${part.trim()}" isn't understood by scripts/setup.mjs.`);
    const least = wanted.split('.').map(Number);
    const major = operator === '>=' || actual[0] === least[0];
    return major && compare(actual, least) >= 0;
  });
}

function compare(left, right) {
  const index = left.findIndex((number, position) => number !== (right[position] ?? 0));
  return index < 0 ? 0 : left[index] - (right[index] ?? 0);
}

function readJson(folder, path) {
  return JSON.parse(readFileSync(join(folder, path), 'utf8'));
}
