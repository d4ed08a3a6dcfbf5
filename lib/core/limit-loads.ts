import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import pLimit from 'p-limit';

/**
 * A load that runs when its turn comes; or at once, without a place, when a loader that has one waits for it. Of that the
 * place learns from the caller (`isInLoader`) by its flight or last resort, and the load; for one of many keys by the batch.
 */
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
  take: (load) => ({ result: load(), hurry: runsAlready }),
};

function runsAlready(): void {}

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
    const place = new PlaceInLine(() => this.#run(load));
    void this.#limit(() => place.come());
    return place;
  }

  #run(load: () => Promise<unknown>): Promise<unknown> {
    const loader = { isOver: false };
    return this.#loader.run(loader, load).finally(() => {
      loader.isOver = true;
    });
  }
}

class PlaceInLine implements Place {
  readonly result: Promise<unknown>;
  #run!: () => void;
  #runs = false;

  constructor(run: () => Promise<unknown>) {
    this.result = new Promise((resolve) => {
      // In the AsyncLocalStorage context of whoever wants it, whoever lets it run.
      this.#run = AsyncResource.bind(() => resolve(run()));
    });
  }

  /** Its turn has come. What runs already needs no place. */
  come(): Promise<unknown> | undefined {
    if (this.#runs) return undefined;
    this.hurry();
    return this.result.catch(() => {});
  }

  hurry(): void {
    if (this.#runs) return;
    this.#runs = true;
    this.#run();
  }
}
