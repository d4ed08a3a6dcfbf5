// What `prepack` makes of dist/lib, for the users' machines: each entry of package.json's exports in one file of code and
// one of declarations, and what entries share in one more of each. Comments stay in the declarations, where editors show
// them; the code is made small, and the source maps hold its sources.
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { build } from 'esbuild';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';
import { root } from './setup.mjs';

const library = join(root, 'dist/lib');
const bundled = mkdtempSync(join(root, 'dist/bundle-'));
const entries = Object.values(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).exports).filter(
  (entry) => entry.types,
);

try {
  await bundleCode();
  await bundleDeclarations();
  rmSync(library, { recursive: true });
  renameSync(bundled, library);
  // Else the next `nest build` would find nothing to do.
  rmSync(join(root, 'dist/lib.tsbuildinfo'), { force: true });
} finally {
  rmSync(bundled, { recursive: true, force: true });
}

async function bundleCode() {
  const { outputFiles } = await build({
    entryPoints: named('default', '.js'),
    outdir: bundled,
    bundle: true,
    splitting: true,
    chunkNames: 'shared',
    packages: 'external',
    format: 'esm',
    target: 'es2022',
    minify: true,
    // Node shows the line of an error.
    lineLimit: 160,
    // Nest's messages name classes, and stack traces functions.
    keepNames: true,
    legalComments: 'none',
    sourcemap: true,
    write: false,
    logLevel: 'warning',
  });
  for (const { path, text } of outputFiles) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, path.endsWith('.map') ? withSources(path, JSON.parse(text)) : text);
  }
}

/** The map's sources by their paths in the project, with their text: the package has no folder of them. */
function withSources(path, map) {
  const files = map.sources.map((source) => resolve(dirname(path), source));
  return JSON.stringify({
    ...map,
    sources: files.map((file) => relative(root, file)),
    sourcesContent: files.map((file) => readFileSync(file, 'utf8')),
  });
}

async function bundleDeclarations() {
  const bundle = await rollup({
    input: named('types', '.d.ts'),
    plugins: [dts()],
    external: (id) => !/^[./]/.test(id),
    onwarn: ({ message }) => {
      // Types that no entry exports stay in `shared`, where those that do refer to them find them.
      if (!message.includes('private shared type exports')) throw new Error(message);
    },
  });
  const { output } = await bundle.generate({
    dir: bundled,
    format: 'es',
    entryFileNames: '[name].d.ts',
    chunkFileNames: 'shared.d.ts',
  });
  await bundle.close();
  for (const { fileName, code } of output) writeFileSync(join(bundled, fileName), code);
}

/** The entries by their names in dist/lib, such as `testing/index`. */
function named(condition, extension) {
  return Object.fromEntries(
    entries.map((entry) => {
      const file = join(root, entry[condition]);
      return [relative(library, file).slice(0, -extension.length), file];
    }),
  );
}
