// The same unprotected cache-aside on node-redis, on which @keyv/redis is built. It writes the commands of one tick
// together by itself.
import { createClient } from '@redis/client';

export async function create({ port, ttl }) {
  const redis = createClient({ socket: { host: '127.0.0.1', port } });
  redis.on('error', () => {});
  await redis.connect();
  return {
    async getOrLoad(key, loader) {
      const found = await redis.get(key);
      if (found !== null) return JSON.parse(found);
      const value = await loader();
      await redis.set(key, JSON.stringify(value), { PX: ttl });
      return value;
    },
    evict: (key) => redis.del(key),
    close: () => redis.destroy(),
  };
}
