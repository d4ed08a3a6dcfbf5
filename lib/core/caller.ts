import { AsyncResource } from 'node:async_hooks';
import { setMaxListeners } from 'node:events';
import type { Answer } from './answer.js';
import type { Clock, Timer } from './clock.js';
import type { LoadSignal } from './load-signal.js';
import type { Provenance } from './provenance.js';
import type { ResolvedLoadOptions } from './resolved-options.js';

/** What a loader is given. */
export interface LoadContext {
  /** Aborts when the value is no longer of use: `maxLoad` has passed, the lease is lost, the application closes. */
  readonly signal: AbortSignal;
}

/** Makes the value. */
export type Loader<T> = (context: LoadContext) => T | PromiseLike<T>;

/** What makes a caller one that nobody waits for: the AsyncLocalStorage context of its loader, which is not that of its maker. */
export interface Background {
  readonly context: AsyncResource;
}

/** One call, or several alike: what it asks for, since when, and the promise it waits on, which settles once. */
export class Caller {
  readonly promise: Promise<unknown>;
  readonly loader: (signal: LoadSignal) => unknown;
  readonly options: ResolvedLoadOptions;
  readonly startedAt: number;
  /** Its loader is one of those that `maxConcurrentLoads` counts. */
  readonly takesPlace: boolean = true;
  /** The flight it is in, which wants to know when it leaves early. */
  flight: { left(): void } | undefined;
  /** Nobody waits for it: it stands in for those who were answered with the old value. */
  readonly isBackground: boolean;
  /** A loader that runs waits for it. */
  isInLoader = false;
  /** How many calls it stands for. */
  calls = 1;
  /** It has just asked, and what it is answered will do for calls alike of the same tick. */
  takesCalls = false;
  /** The old value that this caller may be given when there is no new one. Its own read found it, so it is proven. */
  stale: Answer | undefined;
  /** For how many milliseconds it had not been fresh when it was found. */
  staleSince = 0;
  /** Where the caller's AsyncLocalStorage lives, for its loader. */
  readonly #context: AsyncResource;
  #waitsSince: number;
  #settled = false;
  #resolve!: (value: unknown) => void;
  #reject!: (reason: unknown) => void;
  #deadline: Timer | undefined;
  #softDeadline: Timer | undefined;
  #stopAborting: (() => void) | undefined;

  constructor(
    loader: (signal: LoadSignal) => unknown,
    options: ResolvedLoadOptions,
    startedAt: number,
    background?: Background,
  ) {
    this.loader = loader;
    this.isBackground = background !== undefined;
    this.#context = background?.context ?? new AsyncResource('StampedeCacheCaller');
    this.options = options;
    this.startedAt = startedAt;
    this.#waitsSince = startedAt;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    if (options.signal) this.#abortBy(options.signal);
  }

  /** One that loads on behalf of this caller, who is answered already. Its failure is told in an event only. */
  inBackground(nobody: AsyncResource, now: number): Caller {
    const { options } = this;
    const context = options.refreshContext === 'caller' ? this.#context : nobody;
    const caller = this.standIn({ ...options, signal: undefined, reload: false }, now, { context });
    caller.promise.catch(() => {});
    return caller;
  }

  protected standIn(options: ResolvedLoadOptions, startedAt: number, background: Background): Caller {
    return new Caller(this.loader, options, startedAt, background);
  }

  /** Whether the error of an earlier load will do. */
  get canDoWithout(): boolean {
    return this.options.errorHoldOff > 0 && (this.isBackground || this.stale !== undefined);
  }

  /** It asks anew, but has waited before: whoever calls now has all of its own time to wait. */
  goingRoundAgain(): this {
    this.takesCalls = false;
    return this;
  }

  get settled(): boolean {
    return this.#settled;
  }

  /** Runs something as if the caller had called it: in its AsyncLocalStorage context. */
  inItsContext<T>(run: () => T): T {
    return this.#context.runInAsyncScope(run);
  }

  answer(answer: Answer, provenance: Provenance): void {
    if (this.#settled) return;
    try {
      this.#settle();
      this.options.told?.(provenance);
      this.#resolve(answer.for(this.options.isolate));
    } catch (error) {
      // A codec that decodes a text once and throws the second time.
      this.#reject(error);
    }
  }

  fail(reason: unknown): void {
    if (this.#settled) return;
    this.#settle();
    this.#reject(reason);
  }

  /** Calls `ended` when this caller has waited its `wait`, counted from its start; right away when that is over already. */
  startDeadline(clock: Clock, ended: () => void): void {
    if (this.#settled || this.#deadline) return;
    const left = this.#waitsSince + this.options.wait - clock.now();
    this.#deadline = clock.after(Math.max(0, left), ended);
  }

  /** Calls `ended` when this caller has waited its `softTimeout`, counted from its start. */
  startSoftDeadline(clock: Clock, ended: () => void): void {
    const { softTimeout } = this.options;
    if (this.#settled || softTimeout === Number.POSITIVE_INFINITY) return;
    this.#softDeadline?.clear();
    this.#softDeadline = clock.after(Math.max(0, this.startedAt + softTimeout - clock.now()), ended);
  }

  /** It waits for nobody: its own loader runs. */
  forgetDeadline(): void {
    this.#deadline?.clear();
    this.#deadline = undefined;
  }

  /** Its own loader ran for nothing; its `wait` begins now. */
  waitAnew(clock: Clock): void {
    this.#waitsSince = clock.now();
  }

  #abortBy(signal: AbortSignal): void {
    const abort = () => {
      this.fail(signal.reason);
      this.flight?.left();
    };
    if (signal.aborted) {
      abort();
    } else {
      // One signal may end many calls; Node warns from the eleventh listener on.
      setMaxListeners(0, signal);
      signal.addEventListener('abort', abort, { once: true });
      const stop = () => signal.removeEventListener('abort', abort);
      this.#stopAborting = stop;
    }
  }

  #settle(): void {
    this.#settled = true;
    this.forgetDeadline();
    this.#softDeadline?.clear();
    this.#stopAborting?.();
  }
}
