// @epic-web/cachified with a cache on ioredis, written the way its documentation describes. It shares the loader of a key in
// one process, not the GET.
import { cachified, totalTtl } from '@epic-web/cachified';
import { connect } from './connect.mjs';

export async function create({ port, ttl }) {
  const redis = await connect(port);
  const cache = {
    name: 'ioredis',
    async get(key) {
      const found = await redis.get(key);
      return found === null ? null : JSON.parse(found);
    },
    set(key, entry) {
      const px = totalTtl(entry.metadata);
      const text = JSON.stringify(entry);
      return px === Number.POSITIVE_INFINITY ? redis.set(key, text) : redis.set(key, text, 'PX', px);
    },
    delete: (key) => redis.del(key),
  };
  return {
    getOrLoad: (key, loader) => cachified({ key, cache, ttl, getFreshValue: () => loader() }),
    evict: (key) => cache.delete(key),
    close: () => redis.disconnect(),
  };
}
