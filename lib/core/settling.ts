import { Answer } from './answer.js';
import type { Caller } from './caller.js';
import { CacheClosedError } from './errors.js';
import type { Events } from './events.js';
import type { LoadResult } from './load.js';
import { type ErrorCodec, parseOutcome } from './outcome.js';
import type { EndReply } from './store.js';
import type { Write } from './write.js';

/** Gives a caller what there is for it; one that isn't settled by it goes round again. */
export type Settle = (caller: Caller) => void;

/** What `end` came to; `unanswered` when the store was away, or had no reply in time. */
export type EndResult = EndReply | { readonly is: 'unanswered'; readonly error?: unknown };

/** What callers in the loading process get: the value, or the very error that was thrown, or that all is over. */
export function settleWith(result: LoadResult, owner: Caller, payload?: string): Settle {
  if (result.is === 'value') {
    const answer = Answer.loaded(result.value, owner.options.codec, payload);
    return (caller) => caller.answer(answer);
  }
  if (result.is === 'error') return (caller) => caller.fail(result.error);
  // Who joined a load in the moment in which it was given up, since nobody waited for it, goes round again.
  return (caller) => result.why === 'closed' && caller.fail(new CacheClosedError());
}

/** What callers get of a load in another process; `undefined` when its text can't be read. */
export function readOutcome(text: string, reader: Caller | undefined, errorCodec: ErrorCodec): Settle | undefined {
  const outcome = parseOutcome(text);
  if (!outcome || !reader) return undefined;
  try {
    if (outcome.is === 'value') {
      const answer = Answer.decode(outcome.payload, reader.options.codec);
      return (caller) => caller.answer(answer);
    }
    const error = errorCodec.decode(outcome.text);
    return (caller) => caller.options.shareErrors && caller.fail(error);
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
    else events.emit({ type: 'fill', key, ttl: write.entry?.px ?? 0, duration: result.duration });
  }
}
