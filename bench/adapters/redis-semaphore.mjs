// Cache-aside by hand around redis-semaphore's Mutex with its own defaults (a try every 10 ms, the lease renewed while it is
// held): GET; on a miss acquire; GET again; load; SET; release.
import { Mutex } from 'redis-semaphore';
import { connect } from './connect.mjs';

export async function create({ port, ttl, lease, wait }) {
  const redis = await connect(port);
  const mutexOf = (name) => new Mutex(redis, name, { lockTimeout: lease, acquireTimeout: wait, onLockLost: () => {} });
  return {
    async getOrLoad(key, loader) {
      const found = await redis.get(key);
      if (found !== null) return JSON.parse(found);
      const mutex = mutexOf(key);
      await mutex.acquire();
      try {
        const again = await redis.get(key);
        if (again !== null) return JSON.parse(again);
        const value = await loader();
        await redis.set(key, JSON.stringify(value), 'PX', ttl);
        return value;
      } finally {
        await mutex.release();
      }
    },
    async lock(name) {
      const mutex = mutexOf(name);
      await mutex.acquire();
      return () => mutex.release();
    },
    evict: (key) => redis.del(key),
    close: () => redis.disconnect(),
  };
}
