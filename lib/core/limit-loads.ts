import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import pLimit from 'p-limit';

/** A load that runs when its turn comes. */
export interface Place {
  readonly result: Promise<unknown>;
  /** Lets it run now. */
  hurry(): void;
}

/** How many loads run at once. */
export interface LoadLimit {
  /** Whether who asks is a loader that runs: it keeps its place while it waits, so what it waits for must not wait for a place. */
  readonly isInLoader: boolean;
  take(load: () => Promise<unknown>): Place;
}

/** At most so many loads at once, but for those that a loader waits for: a few of these would wait for each other. */
export function limitLoadsTo(most: number): LoadLimit {
  return most === Number.POSITIVE_INFINITY ? NO_LIMIT : new Places(most);
}

const NO_LIMIT: LoadLimit = {
  isInLoader: false,
  take: (load) => ({ result: load(), hurry: hasBegun }),
};

function hasBegun(): void {}

class Places implements LoadLimit {
  readonly #limit: ReturnType<typeof pLimit>;
  /** What a loader leaves behind, such as a timer, is not that loader any more when it is over. */
  readonly #loader = new AsyncLocalStorage<{ isOver: boolean }>();

  constructor(most: number) {
    this.#limit = pLimit(most);
  }

  get isInLoader(): boolean {
    return this.#loader.getStore()?.isOver === false;
  }

  take(load: () => Promise<unknown>): Place {
    const loader = { isOver: false };
    const run = () =>
      this.#loader.run(loader, load).finally(() => {
        loader.isOver = true;
      });
    const isNested = this.isInLoader;
    let running: Promise<unknown> | undefined;
    let start!: () => Promise<unknown>;
    const result = new Promise((resolve) => {
      // Whoever lets it run: in the AsyncLocalStorage context of whoever wants it.
      start = AsyncResource.bind(() => {
        running ??= run();
        resolve(running);
        return running;
      });
    });
    const hurry = () => void start().catch(() => {});
    if (isNested) hurry();
    else void this.#limit(start).catch(() => {});
    return { result, hurry };
  }
}
