// What `npm run bench` runs: every workload with every system, beside one another; see README.md.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { build } from '../scripts/build.mjs';
import { ensureDependencies } from '../scripts/setup.mjs';

const folder = import.meta.dirname;
const USAGE = `npm run bench -- [workload …] [options]

  --list          names of workloads and systems
  --quick         fewer workloads, systems, calls and rounds: under 3 minutes, for a glance
  --only a,b      these systems
  --skip a,b      all but these
  --rounds N      by default 3, with --quick 1
  --count N       calls of a sample, in workloads that have such a number
  --hurry         doesn't wait for a quiet machine, and takes no sample again; --quick neither
  --out FOLDER    where JSON and charts go; by default bench/results for whole runs, else bench/results/partial
  --no-setup      uses packages and the build as they are

In place of a workload:
  profile [what]  where the CPU of hits (the default), misses or locks goes, function by function
  docs            writes what bench/results has to docs/performance.md; with --check, only says whether it is there`;

/** With fewer, or with some systems left out, numbers say nothing that should be published. */
const ROUNDS = 3;

try {
  await main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}

async function main() {
  const { values: options, positionals } = parseArgs({
    allowPositionals: true,
    allowNegative: true,
    options: {
      list: { type: 'boolean' },
      help: { type: 'boolean' },
      quick: { type: 'boolean', default: false },
      hurry: { type: 'boolean', default: false },
      only: { type: 'string' },
      skip: { type: 'string' },
      rounds: { type: 'string' },
      count: { type: 'string' },
      out: { type: 'string' },
      setup: { type: 'boolean', default: true },
      check: { type: 'boolean', default: false },
    },
  });
  if (options.help) return console.log(USAGE);
  if (positionals[0] === 'docs') return docs(options);
  if (options.setup && !options.list) setUp();

  // Not before: they need the packages.
  const { SYSTEMS } = await import('./systems.mjs');
  const { WORKLOADS } = await import('./workloads/index.mjs');
  if (options.list) return list(WORKLOADS, SYSTEMS);

  const { quick } = options;
  const only = namesIn(options.only, SYSTEMS, 'system');
  const skip = namesIn(options.skip, SYSTEMS, 'system') ?? [];
  const systems = SYSTEMS.filter(
    ({ name, quick: isQuick }) => (only ? only.includes(name) : !quick || isQuick) && !skip.includes(name),
  );
  const rounds = Number(options.rounds ?? (quick ? 1 : ROUNDS));
  const count = options.count && Number(options.count);
  const hurry = quick || options.hurry;
  const isWhole = !hurry && !only && skip.length === 0 && !count && rounds >= ROUNDS;
  const out = options.out ?? join(folder, isWhole ? 'results' : 'results/partial');

  if (positionals[0] === 'profile') {
    const { profile } = await import('./profile.mjs');
    await profile({
      what: positionals[1],
      folder: options.out ?? join(folder, count ? 'results/partial' : 'results'),
      count,
    });
    return count || options.out ? undefined : docs({});
  }
  const names = positionals.length > 0 ? namesIn(positionals.join(), WORKLOADS, 'workload') : undefined;
  const workloads = WORKLOADS.filter(({ name, quick: isQuick }) => (names ? names.includes(name) : !quick || isQuick));
  const { run } = await import('./run.mjs');
  await run({ workloads, systems, rounds, quick, hurry, count, folder: out });
  console.log(`\nJSON and charts: ${out}`);
  if (isWhole) await docs({});
}

async function docs({ check = false, out: from }) {
  const { writeDocs } = await import('./docs.mjs');
  const isDifferent = writeDocs({ check, from });
  if (isDifferent && check)
    throw new Error('docs/performance.md is not what bench/results says: npm run bench -- docs');
  if (isDifferent) console.log('docs/performance.md is written anew.');
}

/** The library's packages and its build, and the peers. */
function setUp() {
  ensureDependencies();
  build('nestjs-stampede-cache', { sources: ['lib'], output: 'dist/lib' });
  ensureDependencies(folder);
}

function namesIn(text, all, what) {
  const names = text?.split(',').map((name) => name.trim());
  const unknown = names?.find((name) => !all.some((known) => known.name === name));
  if (unknown) throw new Error(`There is no ${what} "${unknown}"; --list names them.`);
  return names;
}

function list(workloads, systems) {
  for (const { name, title } of workloads) console.log(`${name.padEnd(26)} ${title}`);
  console.log('');
  for (const { name, kind } of systems) console.log(`${name.padEnd(26)} ${kind}`);
}
