import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './setup.mjs';

/** The torture suite is TypeScript, and runs without jest: into one file with it. */
export async function bundleTorture() {
  const { build } = await import('esbuild');
  // Several may run at once.
  const outfile = join(root, `dist/torture/main-${process.pid}.mjs`);
  await build({
    entryPoints: [join(root, 'test/torture/main.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    logLevel: 'error',
  });
  try {
    const { main } = await import(pathToFileURL(outfile).href);
    return { main, worker: join(root, 'test/torture/torture.worker.mjs') };
  } finally {
    rmSync(outfile);
  }
}
