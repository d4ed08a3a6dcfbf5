// cacheable's `getOrSet`: Redis alone as its primary store, or, its usual form, memory as the primary and Redis as the
// secondary one. It shares the loader of a key in one process, not the GET.
import { createKeyv } from '@keyv/redis';
import { Cacheable } from 'cacheable';

export async function create({ port, ttl, inMemory }) {
  const redis = createKeyv(`redis://127.0.0.1:${port}`);
  redis.on('error', () => {});
  const cache = new Cacheable({ [inMemory ? 'secondary' : 'primary']: redis, ttl });
  cache.on('error', () => {});
  await redis.get('connects');
  return {
    getOrLoad: (key, loader) => cache.getOrSet(key, loader, { ttl, throwErrors: true }),
    evict: (key) => cache.delete(key),
    close: () => cache.disconnect(),
  };
}
