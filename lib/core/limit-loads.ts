import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import pLimit from 'p-limit';
import type { LimitLoads } from './load.js';

/**
 * At most so many loads at once. A load that is caused by another's loader takes no slot of its own: the outer one keeps its
 * slot while it waits, so that a few of them would wait for each other.
 */
export function limitLoadsTo(most: number): LimitLoads {
  if (most === Number.POSITIVE_INFINITY) return (load) => load();
  const limit = pLimit(most);
  const isLoading = new AsyncLocalStorage<true>();
  return (load) =>
    isLoading.getStore()
      ? load()
      : limit(AsyncResource.bind(() => isLoading.run(true, load)) as () => Promise<unknown>);
}
