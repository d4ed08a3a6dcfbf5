import type { Caller } from './caller.js';
import { InvalidOptionError } from './errors.js';
import { Gathering, type GatheringParts } from './gathering.js';
import { isError } from './is-error.js';
import { KeyCaller } from './key-caller.js';
import { messageOf } from './message-of.js';
import type { Caching, LoadOptions, ProfiledOptions, Ttl } from './options.js';
import type { ProfileName } from './profile-names.js';
import type { ResolvedLoadOptions } from './resolved-options.js';

/** A value for each of the keys, in their order; an `Error` for one whose load has failed. */
export type ManyValues<T> = readonly (T | Error)[];

/** The values by their keys; a key that isn't there has no value (`undefined`). */
export type ValuesByKey<T, Id = string> = ReadonlyMap<Id, T | Error>;

/** What becomes of a call for many keys when the load of one of them fails. */
export type OnKeyError = 'throw' | 'return';

/** The options of a call for many keys; each holds for every key. */
export interface LoadManyOptions<T = unknown, E extends OnKeyError = OnKeyError> extends LoadOptions<T>, KeyErrors<E> {}

/** The same with those of a profile, and others in the place of some. */
export interface LoadManyProfiledOptions<T = unknown, E extends OnKeyError = OnKeyError>
  extends ProfiledOptions<T>,
    KeyErrors<E> {}

/** What a call for many keys says of how its values are kept: a `ttl`, the name of a profile, or options. */
export type ManyCaching<T, E extends OnKeyError = OnKeyError> =
  | Ttl<T>
  | ProfileName
  | LoadManyOptions<T, E>
  | LoadManyProfiledOptions<T, E>;

interface KeyErrors<E extends OnKeyError> {
  /**
   * When the load of a key fails: the call rejects with its error (`'throw'`; what is loaded for the others is stored), or
   * the `Error` stands in the place of its value (`'return'`). Default `'throw'`.
   */
  readonly errors?: E;
}

/** What there is for one key. */
export type Loaded<T, E extends OnKeyError> = 'return' extends E ? T | Error : T;

/** So many keys are asked for at once: a script for each has to be done well within a command's deadline. */
const AT_ONCE = 1_000;

export interface ManyParts extends GatheringParts {
  readonly options: ResolvedLoadOptions;
  readonly errors: OnKeyError;
  /** Asks for one key. */
  ask(key: string, caller: Caller): unknown;
  /** What is asked for meanwhile is read together. */
  together(ask: () => void): void;
}

/**
 * What only a call for many has, apart from what every call has.
 *
 * @throws InvalidOptionError when `errors` is neither `'throw'` nor `'return'`
 */
export function splitOnKeyError<T>(given: ManyCaching<T>): { errors: OnKeyError; caching: Caching<T> } {
  if (typeof given !== 'object' || given === null) return { errors: 'throw', caching: given };
  const { errors = 'throw', ...caching } = given;
  if (errors === 'throw' || errors === 'return') return { errors, caching };
  throw new InvalidOptionError('errors', errors, "'throw' or 'return'");
}

/** The value of each key, in their order. One that fails ends the call: of later thousands nothing is asked for. */
export async function loadMany(keys: readonly string[], parts: ManyParts): Promise<unknown[]> {
  // The caller may do with its array what it likes.
  const asked = [...keys];
  const distinct = [...new Set(asked)];
  const values = new Map<string, unknown>();
  for (let from = 0; from < distinct.length; from += AT_ONCE) {
    const some = distinct.slice(from, from + AT_ONCE);
    const found = await askTogether(some, parts);
    for (const [i, key] of some.entries()) values.set(key, found[i]);
  }
  return asked.map((key) => values.get(key));
}

function askTogether(keys: readonly string[], parts: ManyParts): Promise<unknown[]> {
  const { options, clock, errors } = parts;
  options.signal?.throwIfAborted();
  const gathering = new Gathering(parts);
  const startedAt = clock.now();
  const callers = keys.map((key) => new KeyCaller(key, gathering, options, startedAt));
  for (const caller of callers) caller.isInLoader = parts.loadLimit.isInLoader;
  parts.together(() => {
    for (const [i, caller] of callers.entries()) parts.ask(keys[i] as string, caller);
  });
  const answers = callers.map(({ promise }) => promise);
  return errors === 'throw' ? Promise.all(answers) : errorsInPlace(answers, options.signal);
}

/** @throws the reason of the signal that ended the call */
async function errorsInPlace(answers: readonly Promise<unknown>[], signal?: AbortSignal): Promise<unknown[]> {
  const settled = await Promise.allSettled(answers);
  return settled.map((each) => {
    if (each.status === 'fulfilled') return each.value;
    const { reason } = each;
    if (signal?.aborted && reason === signal.reason) throw reason;
    return isError(reason) ? reason : new Error(messageOf(reason), { cause: reason });
  });
}
