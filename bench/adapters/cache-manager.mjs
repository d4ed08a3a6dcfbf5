// cache-manager's `wrap` on @keyv/redis, or with cacheable's memory in front, as its README shows. The calls of a key in one
// process share one run of it, the GET included.
import { createKeyv } from '@keyv/redis';
import { createCache } from 'cache-manager';
import { CacheableMemory } from 'cacheable';
import { Keyv } from 'keyv';

export async function create({ port, ttl, inMemory }) {
  const redis = createKeyv(`redis://127.0.0.1:${port}`);
  redis.on('error', () => {});
  const memory = inMemory && new Keyv({ store: new CacheableMemory({ ttl, lruSize: inMemory }) });
  const cache = createCache({ stores: memory ? [memory, redis] : [redis], ttl });
  await redis.get('connects');
  return {
    getOrLoad: (key, loader) => cache.wrap(key, loader, ttl),
    evict: (key) => cache.del(key),
    close: () => cache.disconnect(),
  };
}
