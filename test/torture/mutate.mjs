// Breaks the library one line at a time, and looks whether the torture suite finds it:
//   node test/torture/mutate.mjs [--seeds K] [--seconds S] [--jobs N] [part of a mutation's name …]
// Each is a copy of lib under dist/mutants, so that nothing else is touched.
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import ts from 'typescript';
import { build } from '../../scripts/build.mjs';
import { root } from '../../scripts/setup.mjs';
import { MUTATIONS } from './mutations.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seeds: { type: 'string', default: '3' },
    seed: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '40' },
    jobs: { type: 'string', default: '1' },
    skip: { type: 'string', default: '0' },
  },
});
/** So long, in milliseconds, after its end even a run in which nothing is answered is over. */
const HUNG_AFTER = 180_000;

build('nestjs-stampede-cache', { sources: ['lib'], output: 'dist/lib' });
const mutants = join(root, `dist/mutants-${process.pid}`);
const chosen = MUTATIONS.slice(Number(values.skip)).filter(
  ({ name }) => positionals.length === 0 || positionals.some((part) => name.includes(part)),
);
rmSync(mutants, { recursive: true, force: true });
const results = [];
const left = [...chosen.entries()];
await Promise.all(Array.from({ length: Number(values.jobs) }, work));
rmSync(mutants, { recursive: true, force: true });
const missed = results.filter(({ found }) => !found);
console.log(`\n${results.length - missed.length} of ${results.length} found`);
for (const { name } of missed) console.log(`  not found: ${name}`);
process.exit(missed.length > 0 ? 1 : 0);

async function work() {
  for (let next = left.shift(); next; next = left.shift()) {
    const [number, mutation] = next;
    const library = breakLibrary(join(mutants, String(number)), mutation);
    const began = Date.now();
    let found = false;
    let tries = 0;
    const counts = [];
    for (let i = 0; i < Number(values.seeds) && !found; i++) {
      tries++;
      counts.push(await torture(library, Number(values.seed) + i));
      found = mutation.finds.some((check) => counts.at(-1)?.includes(check));
    }
    results.push({ name: mutation.name, found });
    const how = `${found ? 'found by' : 'NOT FOUND, but'} ${counts.filter(Boolean).join(' | ') || 'nothing'}`;
    console.log(
      `${mutation.name} (${mutation.file}): ${how}; ${tries} seeds, ${Math.round((Date.now() - began) / 1_000)} s`,
    );
  }
}

/** A copy of lib in which one thing is different, as JavaScript. */
function breakLibrary(directory, { name, file, from, to }) {
  cpSync(join(root, 'lib'), join(directory, 'lib'), { recursive: true });
  const broken = join(directory, 'lib', file);
  const text = readFileSync(broken, 'utf8');
  if (text.split(from).length !== 2) throw new Error(`"${name}": what it changes is not there once, in ${file}`);
  writeFileSync(
    broken,
    text.replace(from, () => to),
  );
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile);
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root);
  for (const source of readdirSync(join(directory, 'lib'), { recursive: true })) {
    if (!source.endsWith('.ts')) continue;
    const path = join(directory, 'lib', source);
    const { outputText } = ts.transpileModule(readFileSync(path, 'utf8'), {
      compilerOptions: {
        ...options,
        module: ts.ModuleKind.ES2022,
        sourceMap: false,
        declaration: false,
        declarationMap: false,
      },
      fileName: path,
    });
    const output = join(directory, 'js', relative(join(directory, 'lib'), path)).replace(/\.ts$/, '.js');
    mkdirSync(dirname(output), { recursive: true });
    writeFileSync(output, outputText);
  }
  return join(directory, 'js/index.js');
}

/** @returns the checks that found something, each with how often, or `undefined` */
async function torture(library, seed) {
  const args = ['--seed', String(seed), '--seconds', values.seconds, '--library', library];
  const child = spawn(process.execPath, [join(root, 'scripts/torture.mjs'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: Number(values.seconds) * 1_000 + HUNG_AFTER,
  });
  let output = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  child.stderr.on('data', (chunk) => (output += chunk));
  const code = await new Promise((resolve) => child.once('exit', resolve));
  const counts = /counts: (.*)/.exec(output)?.[1];
  if (code !== 0 && !counts) throw new Error(`torture itself failed:\n${output.slice(-2_000)}`);
  return counts;
}
