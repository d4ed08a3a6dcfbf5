import type { Answer } from './answer.js';
import type { Caller } from './caller.js';
import type { Coordination } from './coordination.js';
import type { Flight } from './flight.js';
import type { LastResort } from './last-resort.js';
import type { ErrorCodec } from './outcome.js';

/** An entry from `lead` is proven fresh; one from a plain read is if no moment was stamped on it. */
export type Freshness = 'proven' | 'if never stamped';

/** What a flight needs of the cache that it belongs to. */
export interface Tower extends Coordination {
  readonly errorCodec: ErrorCodec;
  readonly lastResort: LastResort;
  /** An entry's text as an answer. What can't be read is told in an event. */
  readEntry(key: string, text: string, caller: Caller | undefined, fresh: Freshness): Answer | 'stale' | 'unreadable';
  /** Calls of the flight's key that come from now on don't join it. */
  depart(flight: Flight): void;
  /** These callers go round again, from the read. */
  read(key: string, callers: readonly Caller[]): void;
  /** These callers go round again, from the lead. */
  lead(key: string, callers: readonly Caller[]): void;
}
