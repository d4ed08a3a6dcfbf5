import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../setup.mjs';

/**
 * Packs the package as for publishing. With `PACKAGE_FOLDER`, what was packed there before is taken: .ci/run packs once.
 *
 * @returns {{ tarball: string, files: { path: string, size: number }[] }}
 */
export function pack() {
  const folder = process.env.PACKAGE_FOLDER ?? temporaryFolder();
  const description = join(folder, 'pack.json');
  if (!existsSync(description)) {
    mkdirSync(folder, { recursive: true });
    const npm = spawnSync('npm', ['pack', '--json', '--pack-destination', folder], {
      cwd: root,
      encoding: 'utf8',
      shell: process.platform === 'win32',
    });
    if (npm.status !== 0) throw new Error(`npm pack failed:\n${npm.stderr}`);
    writeFileSync(description, npm.stdout.slice(npm.stdout.search(/^[[{]/m)));
  }
  // A list, or since npm 12 an object by name.
  const [{ filename, files }] = Object.values(JSON.parse(readFileSync(description, 'utf8')));
  return { tarball: join(folder, filename), files };
}

function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'package-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
