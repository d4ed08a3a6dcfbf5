import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GOALS } from './goals.mjs';
import { format, markdown, profileTables, tables } from './harness/table.mjs';

const folder = import.meta.dirname;
const PAGE = join(folder, '../docs/performance.md');
const ORDER = [
  ...['hot', 'hits', 'sequential', 'sizes', 'miss', 'trace', 'stampede', 'slow-loader', 'expiry', 'leader-killed'],
  ...['evict', 'locks', 'queue', 'bulk', 'memory', 'start'],
];
const NOTHING = '_Nothing measured yet; `npm run bench` writes it here._';

/**
 * Writes what is in a folder of results, bench/results by default, between the marks of docs/performance.md, so that no
 * number there is typed by hand.
 *
 * @param {{ check?: boolean, from?: string }} options `check`: only look
 * @returns whether the page was different
 */
export function writeDocs({ check = false, from = join(folder, 'results') } = {}) {
  const page = readFileSync(PAGE, 'utf8');
  const read = (name) => {
    const file = join(from, `${name}.json`);
    return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
  };
  const blocks = { goals, results, profile };
  const written = page.replaceAll(
    /(<!-- measured: (\w+) -->\n).*?(<!-- \/measured -->)/gs,
    (_, start, name, end) => `${start}\n${blocks[name](read)}\n\n${end}`,
  );
  if (written !== page && !check) writeFileSync(PAGE, written);
  return written !== page;
}

function goals(read) {
  const lines = GOALS.map(({ workload, goal, of }) => {
    const result = read(workload);
    if (!result) return [goal, 'not measured', '–'];
    try {
      const { measured, met } = of((system, variant) => rowOf(result, system, variant));
      return [goal, measured, met ? 'yes' : '**no**'];
    } catch (error) {
      if (!(error instanceof MissingError)) throw error;
      return [goal, error.message, '–'];
    }
  });
  return markdown([['goal', 'measured', 'met'], ...lines]);
}

class MissingError extends Error {}

function rowOf({ rows }, system, variant) {
  const row = rows.find((candidate) => candidate.system === system && candidate.variant === variant);
  if (!row) throw new MissingError(`${system} was not measured`);
  return row;
}

function results(read) {
  const sections = ORDER.map(read).filter(Boolean).map(section);
  return sections.length === 0 ? NOTHING : sections.join('\n\n');
}

function section(result) {
  const { name, title, about, environment: where, rounds, chart } = result;
  return [
    `### ${title}`,
    about,
    ...(chart ? [`![${title}: ${chart.title}](../bench/results/${name}.svg)`] : []),
    tables(result),
    `<sub>${where.date} · ${where.processor} · Node ${where.node} · Redis ${where.redis} · medians of ${rounds} ` +
      `round${rounds === 1 ? '' : 's'} · bench/results/${name}.json</sub>`,
    ...(name === ORDER[0] ? [versions(where)] : []),
  ].join('\n\n');
}

function versions({ packages }) {
  const list = Object.entries(packages).map(([name, version]) => `${name} ${version}`);
  return `Versions: ${list.join(', ')}.`;
}

function profile(read) {
  const result = read('profile-hits');
  if (!result) return NOTHING;
  const { environment: where, count, callers, distinct, systems } = result;
  return [
    `${format(count)} hits on ${format(distinct)} keys by ${callers} callers, ${where.date}, ${where.processor}, Node ${where.node}. ` +
      'Self time, in µs of one hit.',
    ...systems.map(
      (profiled) => `**${profiled.system}**: ${format(profiled.cpu, 1)} µs of CPU\n\n${profileTables(profiled)}`,
    ),
  ].join('\n\n');
}
