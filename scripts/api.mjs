// `npm run api` writes what the package's entries export, with all types, to api/*.api.md; `npm run check:api` fails when
// that differs from what is there, so that the public surface changes only on purpose.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Extractor, ExtractorConfig } from '@microsoft/api-extractor';
import { root } from './setup.mjs';

const update = process.argv.includes('--update');
const reports = join(root, 'api');
for (const folder of [reports, join(root, 'dist')]) mkdirSync(folder, { recursive: true });
const work = mkdtempSync(join(root, 'dist/api-'));

try {
  const declarations = emitDeclarations();
  const entries = entryPoints();
  const outcomes = entries.map(([name, file]) => report(name, join(declarations, file)));
  const stray = removeStray(entries.map(([name]) => `${name}.api.md`));
  process.exitCode = outcomes.every(Boolean) && (update || stray.length === 0) ? 0 : 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}

function emitDeclarations() {
  const outDir = join(work, 'lib');
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const options = ['--emitDeclarationOnly', '--declarationMap', 'false', '--incremental', 'false'];
  const args = [tsc, '-p', 'lib/tsconfig.lib.json', ...options, '--tsBuildInfoFile', 'null', '--outDir', outDir];
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' });
  if (status !== 0) throw new Error('The library does not build; its errors stand above.');
  return outDir;
}

/** Name of the report, and declarations in dist/lib, of each entry. */
function entryPoints() {
  const { name, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  return Object.entries(exports)
    .filter(([, entry]) => entry.types)
    .map(([path, { types }]) => [`${name}${path.slice(1).replaceAll('/', '-')}`, types.replace('./dist/lib/', '')]);
}

function report(name, declarations) {
  const reportFileName = `${name}.api.md`;
  const config = ExtractorConfig.prepare({
    packageJsonFullPath: join(root, 'package.json'),
    configObjectFullPath: undefined,
    configObject: {
      projectFolder: root,
      mainEntryPointFilePath: declarations,
      newlineKind: 'lf',
      compiler: {
        overrideTsconfig: {
          compilerOptions: {
            module: 'nodenext',
            target: 'es2022',
            lib: ['ES2023'],
            types: ['node'],
            skipLibCheck: true,
          },
          files: [declarations],
        },
      },
      apiReport: { enabled: true, reportFileName, reportFolder: reports, reportTempFolder: work },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: {
        // Every name is public unless it says `@internal`, and TypeDoc says which lack a docstring.
        extractorMessageReporting: {
          default: { logLevel: 'none' },
          'ae-wrong-input-file-type': { logLevel: 'error' },
        },
        compilerMessageReporting: { default: { logLevel: 'error' } },
        tsdocMessageReporting: { default: { logLevel: 'none' } },
      },
    },
  });
  const before = read(join(reports, reportFileName));
  const { succeeded } = Extractor.invoke(config, {
    localBuild: update,
    messageCallback(message) {
      if (message.logLevel === 'error') console.error(message.text);
      message.handled = true;
    },
  });
  const after = read(join(work, reportFileName));
  if (before === after) return succeeded;
  console.log(`api/${reportFileName} ${update ? 'is updated' : 'differs from what the code exports'}.`);
  if (update) return succeeded;
  spawnSync(
    'diff',
    ['-u', '--label', 'api', '--label', 'code', join(reports, reportFileName), join(work, reportFileName)],
    { stdio: 'inherit' },
  );
  console.error('If that is on purpose, run `npm run api` and commit what it writes.');
  return false;
}

function removeStray(names) {
  const stray = readdirSync(reports).filter((file) => file.endsWith('.api.md') && !names.includes(file));
  for (const file of stray) {
    if (update) rmSync(join(reports, file));
    else console.error(`api/${file} is of no entry in package.json's exports.`);
  }
  return stray;
}

function read(file) {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}
