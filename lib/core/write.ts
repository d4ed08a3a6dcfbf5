import { encodeWith } from './codec.js';
import { FOR_EVER, parseDuration } from './durations.js';
import { formatEntry } from './entry.js';
import type { NotStoredReason } from './events.js';
import type { LoadResult } from './load.js';
import { type ErrorCodec, formatOutcome, remoteErrorCodec } from './outcome.js';
import { looksAtAge, needsAge, type ResolvedLoadOptions } from './resolved-options.js';
import { SHORT_LIVED, type StoredEntry } from './store.js';
import type { Random } from './waiting.js';

/** What to store of a value, and what to tell followers when it isn't stored. */
export interface Write {
  /** The codec's text, if it could encode the value. */
  readonly payload?: string;
  readonly entry?: StoredEntry;
  readonly outcome?: string | undefined;
  /** Milliseconds in which an error keeps others from trying again. */
  readonly holdOff?: number;
  readonly notStored?: { readonly reason: NotStoredReason; readonly error?: unknown };
}

type LoadedOrFailed = Exclude<LoadResult, { readonly is: 'aborted' }>;

/** Decides what becomes of a load's result. Never throws: whoever waits for it gets it in any case. */
export function planWrite(
  result: LoadedOrFailed,
  options: ResolvedLoadOptions,
  { random, errorCodec }: { readonly random: Random; readonly errorCodec: ErrorCodec },
): Write {
  if (result.is === 'value') return planValue(result.value, result.duration, options, random);
  const { shareErrors, errorHoldOff } = options;
  const holdOff = looksAtAge(options) ? errorHoldOff : 0;
  if (!shareErrors && holdOff === 0) return {};
  return { outcome: outcomeOfError(result.error, errorCodec), ...(holdOff > 0 && { holdOff }) };
}

function planValue(value: unknown, loadTime: number, options: ResolvedLoadOptions, random: Random): Write {
  let payload: string;
  try {
    payload = encodeWith(options.codec, value);
  } catch (error) {
    return { notStored: { reason: 'unserializable', error } };
  }
  const outcome = formatOutcome({ is: 'value', payload });
  try {
    if (options.cacheIf && !options.cacheIf(value)) return { payload, outcome, notStored: { reason: 'cacheIf' } };
    const ttl = freshFor(value, options, random);
    if (ttl === 0) return { payload, outcome, notStored: { reason: 'ttl' } };
    const entry = makeEntry(formatEntry(payload, loadTime), ttl, options);
    return ttl < SHORT_LIVED ? { payload, entry, outcome } : { payload, entry };
  } catch (error) {
    return { payload, outcome, notStored: { reason: 'options', error } };
  }
}

/** `undefined` when the error can't travel: then followers load for themselves. */
function outcomeOfError(error: unknown, errorCodec: ErrorCodec): string | undefined {
  try {
    const text = errorCodec.encode(error);
    return text === undefined ? undefined : formatOutcome({ is: 'error', text });
  } catch {
    const text = remoteErrorCodec.encode(
      new Error('The loader threw an error that can not be carried to other processes.'),
    );
    return text && formatOutcome({ is: 'error', text });
  }
}

/**
 * An entry that may be answered when it is no longer fresh is kept longer, and says until when it is fresh; so does one whose
 * age somebody wants to know.
 */
export function makeEntry(text: string, ttl: number, options: ResolvedLoadOptions): StoredEntry {
  const window = Math.max(options.staleWhileRevalidate, options.staleIfError);
  if (options.near) return { text, px: ttl + window, freshFor: Math.min(ttl, FOR_EVER) };
  return needsAge(options) ? { text, px: ttl + window, freshFor: ttl } : { text, px: ttl };
}

/**
 * Milliseconds the value is fresh; 0 when it isn't to be stored.
 *
 * @throws InvalidOptionError when a `ttl` function returns no duration, or what it throws
 */
export function freshFor(
  value: unknown,
  { ttl, ttlJitter }: Pick<ResolvedLoadOptions, 'ttl' | 'ttlJitter'>,
  random: Random,
): number {
  const milliseconds = typeof ttl === 'function' ? parseDuration(ttl(value), 'ttl') : ttl;
  // Infinity less a part of it is Infinity, but less 0 times it is NaN.
  return ttlJitter === 0 ? milliseconds : Math.ceil(milliseconds * (1 - ttlJitter * random()));
}
