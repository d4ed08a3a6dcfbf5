import { Answer } from './answer.js';
import type { Caller } from './caller.js';
import type { Clock } from './clock.js';
import { CacheClosedError } from './errors.js';
import type { Events } from './events.js';
import type { LoadLimit } from './limit-loads.js';
import { Load } from './load.js';

interface OwnLoad {
  readonly load: Load;
  readonly startedAt: number;
  readonly callers: Caller[];
  /** They started after this load did, so it can't be their answer: an eviction may lie between. */
  readonly next: Caller[];
}

/**
 * What `onWaitTimeout: 'load'` does for callers whose wait is over: one load without the lock, a key and process at a time,
 * that isn't stored. They stay in their flight as well; what comes first answers them.
 */
export class LastResort {
  readonly #clock: Clock;
  readonly #events: Events;
  readonly #limit: LoadLimit;
  readonly #running = new Map<string, OwnLoad>();

  constructor(clock: Clock, events: Events, limit: LoadLimit) {
    this.#clock = clock;
    this.#events = events;
    this.#limit = limit;
  }

  load(key: string, caller: Caller): void {
    const running = this.#running.get(key);
    if (caller.isInLoader) running?.load.hurry();
    if (!running) void this.#start(key, caller, [caller]);
    else if (caller.startedAt <= running.startedAt) running.callers.push(caller);
    else running.next.push(caller);
  }

  /** Aborts every load; their callers get a `CacheClosedError`. */
  close(): void {
    for (const { load } of this.#running.values()) load.abort('closed');
  }

  async #start(key: string, owner: Caller, callers: Caller[]): Promise<void> {
    if (this.#events.observed) this.#events.emit({ type: 'load', key, alone: true, background: false });
    const running: OwnLoad = {
      load: new Load(key, owner, this.#clock, this.#limit),
      startedAt: this.#clock.now(),
      callers,
      next: [],
    };
    this.#running.set(key, running);
    if (callers.some(({ isInLoader }) => isInLoader)) running.load.hurry();
    const result = await running.load.result;
    this.#running.delete(key);
    const answer = result.is === 'value' ? Answer.loaded(result.value, owner.options.codec) : undefined;
    const error = result.is === 'error' ? result.error : new CacheClosedError();
    for (const caller of callers)
      answer ? caller.answer(answer, { is: 'load', stored: undefined }) : caller.fail(error);

    const waiting = running.next.filter((caller) => !caller.settled);
    const [first] = waiting;
    if (!first) return;
    if (result.is === 'aborted') for (const caller of waiting) caller.fail(error);
    else void this.#start(key, first, waiting);
  }
}
