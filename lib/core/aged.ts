import { Answer } from './answer.js';
import type { Codec } from './codec.js';
import { parseEntry } from './entry.js';
import type { Events } from './events.js';
import type { Random } from './waiting.js';

/** A value as it was found, and its age. */
export interface Aged {
  readonly answer: Answer;
  /** Milliseconds since the epoch, in the store's time; `undefined` when it is fresh as long as it is there. */
  readonly freshUntil: number | undefined;
  /** Milliseconds its loader took. */
  readonly loadTime: number;
}

/** @throws when the text is no entry, is cut, or can't be decoded */
export function readAged(text: string, codec: Codec): Aged {
  const entry = parseEntry(text);
  if (!entry) throw new TypeError('The stored text is not an entry of this version, or it is cut.');
  return { answer: Answer.decode(entry.payload, codec), freshUntil: entry.freshUntil, loadTime: entry.loadTime };
}

/** The same for who does without; what can't be read is told in an event. */
export function readEntry(events: Events, key: string, text: string, codec: Codec): Aged | undefined {
  try {
    return readAged(text, codec);
  } catch (error) {
    if (events.observed) events.emit({ type: 'unreadable', key, error });
    return undefined;
  }
}

/** Milliseconds since it was last fresh; `'unknown'` when the store's time isn't known, and would be needed. */
export type Staleness = 'fresh' | 'unknown' | number;

export function stalenessOf({ freshUntil }: Aged, now: number | undefined): Staleness {
  if (freshUntil === undefined) return 'fresh';
  if (now === undefined) return 'unknown';
  return now < freshUntil ? 'fresh' : now - freshUntil;
}

/** Milliseconds for which a value is still fresh; `undefined` when its age isn't known. */
export function freshnessLeft({ freshUntil }: Aged, now: number | undefined): number | undefined {
  return freshUntil === undefined || now === undefined ? undefined : freshUntil - now;
}

/**
 * Whether to refresh a value that is still fresh: the likelier the closer its end and the longer its load, so that of many
 * callers about one does, early enough.
 *
 * @param calls how many ask at once: each has a number of its own, of which the smallest decides
 * @see Vattani, Chierichetti, Lowenstein: Optimal Probabilistic Cache Stampede Prevention, VLDB 2015, algorithm XFetch
 */
export function isDueEarly(
  { freshUntil, loadTime }: Aged,
  now: number,
  beta: number,
  random: Random,
  calls = 1,
): boolean {
  const smallest = 1 - random() ** (1 / calls);
  return freshUntil !== undefined && now - loadTime * beta * Math.log(smallest) >= freshUntil;
}
