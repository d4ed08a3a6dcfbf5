import type { Caller } from './caller.js';
import type { Clock } from './clock.js';
import { LoadTimeoutError } from './errors.js';
import type { LoadLimit, Place } from './limit-loads.js';
import { LoadSignal } from './load-signal.js';

/** What a load came to. `duration` is in milliseconds. */
export type LoadResult =
  | { readonly is: 'value'; readonly value: unknown; readonly duration: number }
  | { readonly is: 'error'; readonly error: unknown; readonly duration: number }
  | { readonly is: 'aborted'; readonly why: AbortReason };

/** Why a load is given up: its lease was lost, nobody waits for it any more, or the application closes. */
export type AbortReason = 'lost' | 'unused' | 'closed';

const EXPLANATION: Record<AbortReason, string> = {
  lost: 'another process loads this key now',
  unused: 'nobody waits for this load any more',
  closed: 'the application is shutting down',
};

/** One run of one caller's loader, for at most `maxLoad`. `result` never rejects. */
export class Load {
  readonly result: Promise<LoadResult>;
  readonly #context = new LoadSignal();
  #place: Place | undefined;
  #finish!: (result: LoadResult) => void;

  constructor(key: string, owner: Caller, clock: Clock, limit: LoadLimit) {
    let startedAt = clock.now();
    const duration = () => clock.now() - startedAt;
    const { maxLoad } = owner.options;
    const timer = clock.after(maxLoad, () => {
      const error = new LoadTimeoutError(key, maxLoad);
      this.#context.abort(error);
      this.#finish({ is: 'error', error, duration: duration() });
    });
    this.result = new Promise((resolve) => {
      const finish = (result: LoadResult) => {
        timer.clear();
        resolve(result);
      };
      this.#finish = finish;
    });
    const load = async () => {
      // Its place may come late.
      startedAt = clock.now();
      return this.#context.isAborted ? undefined : owner.loader(this.#context);
    };
    const loaded = owner.inItsContext(() => {
      if (!owner.takesPlace) return load();
      this.#place = limit.take(load);
      return this.#place.result;
    });
    loaded.then(
      (value) => this.#finish({ is: 'value', value, duration: duration() }),
      (error) => this.#finish({ is: 'error', error, duration: duration() }),
    );
  }

  /** A loader waits for it, which keeps its own place meanwhile: it runs now. */
  hurry(): void {
    this.#place?.hurry();
    this.#context.hurry();
  }

  /** Aborts the loader's signal; what the loader does then is ignored. */
  abort(why: AbortReason): void {
    this.#finish({ is: 'aborted', why });
    this.#context.abort(new DOMException(`The load was aborted: ${EXPLANATION[why]}.`, 'AbortError'));
  }
}
