import { Answer } from './answer.js';
import type { Caller } from './caller.js';
import { CacheClosedError } from './errors.js';
import type { Events, StaleReason } from './events.js';
import type { LoadResult } from './load.js';
import { type ErrorCodec, parseOutcome } from './outcome.js';
import type { EndReply, StoredEntry } from './store.js';
import type { Write } from './write.js';

/** Gives a caller what there is for it; one that isn't settled by it goes round again. */
export type Settle = (caller: Caller) => void;

/** What `end` came to; `unanswered` when the store was away, or had no reply in time. */
export type EndResult = EndReply | { readonly is: 'unanswered'; readonly error?: unknown };

/** The loaded value, as callers get it. */
export function answerOf(result: LoadResult, owner: Caller, { payload }: Write): Answer | undefined {
  return result.is === 'value' ? Answer.loaded(result.value, owner.options.codec, payload) : undefined;
}

/** What callers in the loading process get: the value, or the very error that was thrown unless they have an old value. */
export function settleWith(
  events: Events,
  key: string,
  result: LoadResult,
  answer: Answer | undefined,
  entry?: StoredEntry | undefined,
): Settle {
  if (answer) return (caller) => caller.answer(answer, { is: 'load', stored: entry && (entry.freshFor ?? entry.px) });
  if (result.is === 'error') {
    const { error } = result;
    return (caller) => answerStale(events, key, caller, 'if-error', error) || caller.fail(error);
  }
  // Who joined a load in the moment in which it was given up, since nobody waited for it, goes round again.
  return (caller) => result.is === 'aborted' && result.why === 'closed' && caller.fail(new CacheClosedError());
}

/** Answers with the old value, if this caller has one. */
export function answerStale(
  events: Events,
  key: string,
  caller: Caller,
  reason: StaleReason,
  error?: unknown,
): boolean {
  if (!caller.stale || caller.settled) return false;
  if (events.observed) events.emit({ type: 'stale', key, reason, ...(error !== undefined && { error }) }, caller.calls);
  caller.answer(caller.stale, { is: 'stale', reason, since: caller.staleSince });
  return true;
}

/** What callers get of a load in another process; `undefined` when its text can't be read. */
export function readOutcome(
  { events, errorCodec }: { readonly events: Events; readonly errorCodec: ErrorCodec },
  key: string,
  text: string,
  reader: Caller | undefined,
): Settle | undefined {
  const outcome = parseOutcome(text);
  if (!outcome || !reader) return undefined;
  try {
    if (outcome.is === 'value') {
      const answer = Answer.decode(outcome.payload, reader.options.codec);
      return (caller) => caller.answer(answer, { is: 'load', stored: undefined });
    }
    const error = errorCodec.decode(outcome.text);
    if (error === undefined) return undefined;
    return (caller) =>
      answerStale(events, key, caller, 'if-error', error) ||
      ((caller.options.shareErrors || caller.isBackground) && caller.fail(error));
  } catch {
    return undefined;
  }
}

/** Tells in events what became of a load. */
export function reportLoad(events: Events, key: string, result: LoadResult, write: Write, end: EndResult): void {
  if (!events.observed) return;
  if (result.is === 'error') {
    events.emit({ type: 'load-failed', key, error: result.error, duration: result.duration });
  } else if (result.is === 'value') {
    if (write.notStored) events.emit({ type: 'not-stored', key, ...write.notStored });
    else if (end.is === 'refused') events.emit({ type: 'not-stored', key, reason: 'refused' });
    else if (end.is === 'unanswered' || !end.stored)
      events.emit({ type: 'not-stored', key, reason: 'store', error: end.error });
    else
      events.emit({ type: 'fill', key, ttl: write.entry?.freshFor ?? write.entry?.px ?? 0, duration: result.duration });
  }
}
