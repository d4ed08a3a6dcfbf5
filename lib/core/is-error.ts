import { types } from 'node:util';

/** Also for the errors of another realm, such as those that Node makes while jest runs a test in a realm of its own. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || types.isNativeError(value);
}
