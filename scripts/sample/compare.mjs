import { randomInt } from 'node:crypto';
import { stampede } from './stampede.mjs';

const PRODUCT = '/products/1';

/**
 * The same crowd on the same product, without the cache and with it.
 *
 * @param {{
 *   instances: string[],
 *   callers: number,
 *   counters: { read(): Promise<{ queries: number, commands?: number }> },
 *   signal: AbortSignal,
 * }} crowd
 */
export async function compare(crowd) {
  const without = await measure(`${PRODUCT}/uncached`, crowd);
  const withCache = await measure(PRODUCT, crowd);
  return { without, with: withCache };
}

/** A stampede on a key that a change of the price has just made cold; an answer is right when it has that price. */
async function measure(path, { counters, ...crowd }) {
  const priceInCents = randomInt(1_000_000);
  await changePrice(crowd.instances[0] + PRODUCT, priceInCents);
  const before = await counters.read();
  const { answers, ...times } = await stampede({ path, ...crowd });
  const after = await counters.read();
  return {
    ...times,
    queries: after.queries - before.queries,
    commands: after.commands === undefined ? undefined : after.commands - before.commands,
    wrong: answers.filter(({ status, body }) => status !== 200 || JSON.parse(body).priceInCents !== priceInCents),
  };
}

async function changePrice(url, priceInCents) {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url, { method: 'PATCH', headers, body: JSON.stringify({ priceInCents }) });
  if (!response.ok) throw new Error(`PATCH ${url} was answered ${response.status}: ${await response.text()}`);
}

/** The first thing that isn't as promised, or `undefined`. */
export function faultOf({ without, with: withCache }) {
  for (const [name, { wrong }] of Object.entries({ without, with: withCache })) {
    const [example] = wrong;
    if (example)
      return `${wrong.length} answers ${name} the cache are wrong, such as ${example.status} ${example.body}`;
  }
  const { queries } = withCache;
  return queries === 1 ? undefined : `with the cache ${count(queries)} queries reached the database, not 1`;
}

export function tableOf(comparison) {
  const head = ['', 'queries that reached the database', 'total time', 'p50', 'p99', 'Redis commands'];
  const rows = Object.entries(comparison).map(([name, { queries, total, p50, p99, commands }]) => [
    `${name} the cache`,
    count(queries),
    ...[total, p50, p99].map((milliseconds) => `${count(Math.round(milliseconds))} ms`),
    commands === undefined ? '–' : count(commands),
  ]);
  return align([head, ...rows]);
}

/** The first column to the left, the others to the right. */
function align(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const pad = (cell, column) => (column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column]));
  return rows.map((row) => row.map(pad).join('   ')).join('\n');
}

function count(number) {
  return number.toLocaleString('en');
}
