import { format } from './table.mjs';

const WIDTH = 860;
const LABELS = 210;
const BARS = 380;
const LINE = 20;
const COLOURS = { ours: '#0b6e4f', peer: '#7d97b5', bound: '#b9b9b9' };

/**
 * The rows of a workload as an SVG of horizontal bars, one panel a variant. Faults stand beside the bar, in red.
 *
 * @param {Map<string, string>} kinds of the systems, by name
 */
export function chartOf({ title, chart, rows }, kinds) {
  const variants = [...new Set(rows.map(({ variant }) => variant))];
  const parts = [text(16, 28, title, 'font-size="17" font-weight="600"')];
  const direction = chart.less ? 'less is better' : 'more is better';
  parts.push(text(16, 48, `${chart.title} (${direction}${chart.logarithmic ? ', logarithmic' : ''})`, 'fill="#555"'));
  let top = 66;
  for (const variant of variants) {
    const panel = rows.filter((row) => row.variant === variant && isShown(row, chart));
    if (panel.length === 0) continue;
    if (variant !== undefined) {
      parts.push(text(16, top + 14, variant, 'font-weight="600"'));
      top += LINE + 4;
    }
    const length = scaleOf(panel, chart);
    for (const row of panel) {
      parts.push(bar(row, chart, kinds.get(row.system), length, top));
      top += LINE;
    }
    top += 12;
  }
  const style = 'font-family="system-ui, sans-serif" font-size="12"';
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${top}" viewBox="0 0 ${WIDTH} ${top}" ${style}>`,
    `<rect width="${WIDTH}" height="${top}" fill="#fff"/>`,
    ...parts,
    '</svg>\n',
  ].join('\n');
}

function isShown(row, { field }) {
  return Number.isFinite(row[field]) || row.faults.length > 0;
}

function scaleOf(rows, { field, logarithmic }) {
  const values = rows.map((row) => row[field]).filter((value) => Number.isFinite(value) && value > 0);
  const most = Math.max(...values);
  if (!logarithmic) return (value) => (Math.max(0, value) / most) * BARS;
  // Half a step below the least, so that it has a bar too.
  const least = Math.min(...values) / 2;
  return (value) => (value > 0 && most > least ? (Math.log(value / least) / Math.log(most / least)) * BARS : 0);
}

function bar(row, { field }, kind, length, top) {
  const value = row[field];
  const width = Number.isFinite(value) ? Math.max(1, length(value)) : 0;
  const end = LABELS + width + 6;
  const number = Number.isFinite(value) ? format(value, value < 100 && !Number.isInteger(value) ? 2 : 0) : '';
  const weight = kind === 'ours' ? ' font-weight="600"' : '';
  const fault = row.faults.length > 0 ? ` <tspan fill="#b3261e">${escaped(shorten(row.faults[0]))}</tspan>` : '';
  return [
    text(LABELS - 8, top + 13, row.system, `text-anchor="end"${weight}`),
    `<rect x="${LABELS}" y="${top + 2}" width="${width.toFixed(1)}" height="${LINE - 5}" fill="${COLOURS[kind]}"/>`,
    `<text x="${end.toFixed(1)}" y="${top + 13}"${weight}>${escaped(number)}${fault}</text>`,
  ].join('');
}

function text(x, y, content, attributes = '') {
  return `<text x="${x}" y="${y}" ${attributes}>${escaped(content)}</text>`;
}

function shorten(fault) {
  return fault.length > 42 ? `${fault.slice(0, 41)}…` : fault;
}

function escaped(content) {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
