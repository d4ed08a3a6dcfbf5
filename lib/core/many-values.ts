import { types } from 'node:util';
import { InvalidLoadResultError } from './errors.js';

/** What is loaded for each of these, from what the loader of many returned: an array in their order, or a `Map` by them. */
export function valuesOf<Id>(
  result: unknown,
  ids: readonly Id[],
  { loader, ids: name }: { readonly loader: string; readonly ids: string },
): unknown[] {
  if (Array.isArray(result)) {
    if (result.length === ids.length) return result;
    throw new InvalidLoadResultError(
      `${loader} returned ${result.length} values for ${ids.length} ${name}. Return one for each, in their order, ` +
        'undefined where there is none; or a Map.',
    );
  }
  if (!types.isMap(result)) {
    throw new InvalidLoadResultError(
      `${loader} must return an array, with one value for each of the ${name} in their order, or a Map.`,
    );
  }
  const values = ids.map((id) => result.get(id));
  const asked = new Set<unknown>(ids);
  for (const id of result.keys()) {
    // Of another type, or another name of the same: everything would be undefined, and stay so for a `ttl`.
    if (asked.has(id)) continue;
    throw new InvalidLoadResultError(
      `${loader} returned a Map with a value for ${String(id)} (a ${typeof id}), which is none of the ${name} that it was given.`,
    );
  }
  return values;
}
