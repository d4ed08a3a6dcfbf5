// lru-cache's `fetch`, without Redis: what a hit in the process's own memory can cost at the least, with one load a process.
import { LRUCache } from 'lru-cache';

export async function create({ ttl, inMemory }) {
  const cache = new LRUCache({ max: inMemory, ttl, fetchMethod: (_key, _stale, { context }) => context() });
  return {
    getOrLoad: (key, loader) => cache.fetch(key, { context: loader }),
    evict: (key) => cache.delete(key),
    close: () => {},
  };
}
