/** The rows of a workload as Markdown, aligned so that it can be read as it is; with variants one table each. */
export function tables({ columns, rows }) {
  const variants = [...new Set(rows.map(({ variant }) => variant))];
  return variants
    .map((variant) => {
      const table = tableOf(
        columns,
        rows.filter((row) => row.variant === variant),
      );
      return variant === undefined ? table : `${variant}\n\n${table}`;
    })
    .join('\n\n');
}

function tableOf(columns, rows) {
  const shown = columns.filter(([field]) => rows.some((row) => isGiven(row[field])));
  const cells = rows.map((row) => [
    row.system,
    ...shown.map(([field, , digits, how]) => format(how === 'worst' ? row.worst[field] : row[field], digits)),
    row.faults.join('; '),
  ]);
  const heads = ['system', ...shown.map(([, title]) => title), 'faults'];
  const withoutFaults = cells.every((row) => row.at(-1) === '');
  return markdown(withoutFaults ? [heads, ...cells].map((row) => row.slice(0, -1)) : [heads, ...cells]);
}

/** Where a hit's CPU goes, as Markdown: by part of the code, and by function. */
export function profileTables({ parts, functions, cpu }) {
  const share = (time) => `${format((100 * time) / cpu, 1)} %`;
  const byPart = parts.map(({ part, time }) => [part, format(time, 2), share(time)]);
  const byFunction = functions.map(({ name, part, time }) => [`\`${name}\``, part, format(time, 2), share(time)]);
  return [
    markdown([['part', 'µs', 'share'], ...byPart]),
    markdown([['function, by itself', 'part', 'µs', 'share'], ...byFunction]),
  ].join('\n\n');
}

/** @param {string[][]} lines the first has the heads */
export function markdown([heads, ...lines]) {
  const safe = [heads, ...lines].map((line) => line.map((cell) => String(cell).replaceAll('|', '\\|')));
  const isNumber = heads.map((_, i) => lines.every((line) => /^(–?|[-\d.,]+)$/.test(String(line[i]))));
  const widths = heads.map((_, i) => Math.max(3, ...safe.map((line) => line[i].length)));
  const line = (cells) =>
    `| ${cells.map((cell, i) => (isNumber[i] ? cell.padStart(widths[i]) : cell.padEnd(widths[i]))).join(' | ')} |`;
  const rule = `|${widths.map((width, i) => (isNumber[i] ? `${'-'.repeat(width + 1)}:` : '-'.repeat(width + 2))).join('|')}|`;
  return [line(safe[0]), rule, ...safe.slice(1).map(line)].join('\n');
}

export function format(value, digits = 0) {
  if (!isGiven(value)) return '–';
  if (typeof value === 'string') return value;
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function isGiven(value) {
  return typeof value === 'string' || Number.isFinite(value);
}
