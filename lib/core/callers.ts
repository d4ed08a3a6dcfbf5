import type { Caller } from './caller.js';
import type { Clock } from './clock.js';

/** What a flight wants to know of its callers. */
export interface CallersWatch {
  /** This caller has waited its `wait`. */
  waitEnded(caller: Caller): void;
  /** This caller, who has an old value, has waited its `softTimeout`. */
  softWaitEnded(caller: Caller): void;
  /** A caller left early. */
  left(): void;
}

/** The callers of one flight, in the order in which they joined, so that a number says who had joined by some moment. */
export class Callers {
  readonly #clock: Clock;
  readonly #watch: CallersWatch;
  #list: Caller[] = [];
  #deadlinesCount = false;

  constructor(clock: Clock, watch: CallersWatch) {
    this.#clock = clock;
    this.#watch = watch;
  }

  join(callers: readonly Caller[]): void {
    for (const caller of callers) {
      if (caller.settled) continue;
      this.#list.push(caller);
      caller.flight = this.#watch;
      if (this.#deadlinesCount) this.#startDeadline(caller);
      if (caller.stale) caller.startSoftDeadline(this.#clock, () => this.#watch.softWaitEnded(caller));
    }
  }

  /** How many have joined so far. */
  get count(): number {
    return this.#list.length;
  }

  /** The one that has waited longest. */
  get first(): Caller | undefined {
    return this.#list.find((caller) => !caller.settled);
  }

  /** Whether a loader waits, which keeps its place while it does. */
  get someAreInLoader(): boolean {
    return this.#list.some((caller) => caller.isInLoader && !caller.settled);
  }

  /** Whether nobody waits but for background loads. */
  get areBackground(): boolean {
    return this.#list.every((caller) => caller.settled || caller.isBackground);
  }

  /** Whether the error of an earlier load will do for all who wait: they hold off, and have an old value or don't ask. */
  get canDoWithout(): boolean {
    return this.#list.every((caller) => caller.settled || caller.canDoWithout);
  }

  /** Forgets those who have left and counts the others: only between commands, since it changes everyone's number. */
  board(): number {
    this.#list = this.#list.filter((caller) => !caller.settled);
    return this.#list.length;
  }

  /** From now on somebody's load is waited for: everybody's `wait` counts, but that of the one whose loader runs. */
  startDeadlines(except?: Caller): void {
    this.#deadlinesCount = true;
    except?.forgetDeadline();
    for (const caller of this.#list) if (caller !== except) this.#startDeadline(caller);
  }

  /** Calls `settle` for the first `count` that still wait. */
  settle(count: number, settle: (caller: Caller) => void): void {
    for (const caller of this.#list.slice(0, count)) if (!caller.settled) settle(caller);
  }

  /** Takes away those who joined after the first `count`, and answers who of them still waits. */
  takeAfter(count: number): Caller[] {
    const taken = this.#list.splice(count).filter((caller) => !caller.settled);
    for (const caller of taken) caller.forgetDeadline();
    return taken;
  }

  #startDeadline(caller: Caller): void {
    caller.startDeadline(this.#clock, () => this.#watch.waitEnded(caller));
  }
}
