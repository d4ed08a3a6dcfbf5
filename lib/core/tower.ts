import type { Aged } from './aged.js';
import type { Answer } from './answer.js';
import type { Caller } from './caller.js';
import type { Coordination } from './coordination.js';
import type { LastResort } from './last-resort.js';
import type { LoadLimit } from './limit-loads.js';
import type { ErrorCodec } from './outcome.js';
import type { Found } from './reads.js';
import type { StoredEntry } from './store.js';

/** What a flight needs of the cache that it belongs to. */
export interface Tower extends Coordination {
  readonly errorCodec: ErrorCodec;
  readonly lastResort: LastResort;
  readonly loadLimit: LoadLimit;
  /** An entry's text as an answer. What can't be read is told in an event. */
  readEntry(key: string, text: string, caller: Caller | undefined): Aged | undefined;
  /** Keeps a value that was loaded while the store is away, for its `ttl`, at most a second. */
  keep(key: string, answer: Answer, entry: StoredEntry): void;
  /** Calls of the flight's key that come from now on don't join it. */
  depart(flight: { readonly key: string }): void;
  /** What the store has for a flight's key: one read for all flights that look in the same tick. */
  look(key: string, withTime: boolean): Promise<Found<undefined>>;
  /** These callers go round again, from the read. */
  read(key: string, callers: readonly Caller[]): void;
  /** These callers go round again, from the lead. */
  lead(key: string, callers: readonly Caller[]): void;
}
