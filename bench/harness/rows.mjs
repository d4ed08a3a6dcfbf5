import { median } from './statistics.mjs';

/**
 * Samples of a workload, as `{ system, round, variant?, faults?, … }`, to the rows of its table: medians over the rounds,
 * and faults with how often they were seen.
 */
export function rowsOf(samples, workload) {
  addRatios(samples, workload.ratio);
  return groups(samples, ({ system, variant = '' }) => `${variant}\n${system}`).map((group) => {
    const [{ system, variant }] = group;
    const worst = workload.columns.filter(([, , , how]) => how === 'worst').map(([field]) => field);
    return {
      system,
      ...(variant !== undefined && { variant }),
      samples: group.filter(({ failed }) => !failed).length,
      ...valuesOf(group),
      worst: Object.fromEntries(worst.map((field) => [field, greatest(group.map((sample) => sample[field]))])),
      faults: countFaults(group),
    };
  });
}

/** In each round, how many times what the other system did. */
function addRatios(samples, ratio) {
  if (!ratio) return;
  for (const sample of samples) {
    const other = samples.find(
      ({ system, round, variant }) => system === ratio.to && round === sample.round && variant === sample.variant,
    );
    if (other?.[ratio.of] && sample[ratio.of]) sample.ratio = sample[ratio.of] / other[ratio.of];
  }
}

function valuesOf(group) {
  const fields = new Set(group.flatMap(Object.keys));
  for (const field of ['system', 'variant', 'round', 'faults', 'failed']) fields.delete(field);
  return Object.fromEntries(
    [...fields].map((field) => {
      const values = group.map((sample) => sample[field]);
      const texts = values.filter((value) => typeof value === 'string');
      return [field, texts.length > 0 ? mostSevere(texts) : rounded(median(values))];
    }),
  );
}

/** Of outcomes in words the one in capitals, if there is one; else the last. */
function mostSevere(texts) {
  return texts.find((text) => text === text.toUpperCase() && /[A-Z]/.test(text)) ?? texts.at(-1);
}

function greatest(numbers) {
  const finite = numbers.filter(Number.isFinite);
  return finite.length === 0 ? null : rounded(Math.max(...finite));
}

function rounded(number) {
  return number === null || Number.isInteger(number) ? number : Number(number.toPrecision(6));
}

/** The same fault with other numbers is the same fault. */
function countFaults(group) {
  const faults = group.flatMap((sample) => sample.faults ?? []);
  return groups(faults, (fault) => fault.replaceAll(/\d+/g, '#')).map((same) => {
    const different = new Set(same);
    const text = different.size === 1 ? same[0] : `${same[0]} or so`;
    return same.length < group.length ? `${text} (in ${same.length} of ${group.length})` : text;
  });
}

function groups(items, keyOf) {
  const map = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (map.has(key)) map.get(key).push(item);
    else map.set(key, [item]);
  }
  return [...map.values()];
}
