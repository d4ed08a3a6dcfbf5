import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './setup.mjs';

const ALWAYS = ['nest-cli.json', 'package-lock.json', 'tsconfig.json'];

/**
 * Builds a project of nest-cli.json into dist/, unless its sources and what was made of them are as they were after the
 * last time. Their contents are compared: a checkout renews times, and other commands build into dist/ too.
 *
 * @param {string} project its name
 * @param {{ sources: string[], output: string }} paths
 */
export function build(project, { sources, output }) {
  const paths = [...ALWAYS, ...sources, output];
  const stamp = join(root, `dist/${project}.built`);
  if (existsSync(stamp) && existsSync(join(root, output)) && readFileSync(stamp, 'utf8') === fingerprint(paths)) return;
  console.log(`Building ${project}.`);
  const nest = join(root, 'node_modules/@nestjs/cli/bin/nest.js');
  const { status } = spawnSync(process.execPath, [nest, 'build', project], { cwd: root, stdio: 'inherit' });
  if (status !== 0) throw new Error(`${project} does not build; its errors stand above.`);
  writeFileSync(stamp, fingerprint(paths));
}

function fingerprint(paths) {
  const hash = createHash('sha256');
  for (const file of paths.flatMap(filesIn)) {
    const text = readFileSync(join(root, file));
    hash.update(`${file}\n${text.length}\n`).update(text);
  }
  return hash.digest('hex');
}

function filesIn(path) {
  if (statSync(join(root, path)).isFile()) return [path];
  const names = readdirSync(join(root, path)).sort();
  return names.flatMap((name) => filesIn(`${path}/${name}`));
}
