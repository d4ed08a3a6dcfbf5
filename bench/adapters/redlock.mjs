// Cache-aside by hand around Redlock, on one Redis: GET; on a miss, under `using`, GET again, load, SET. The library's own
// defaults (a try every 200 ms, or so), with as many tries as the common wait allows. `using` extends the lease.
import { connect } from './connect.mjs';

export async function create({ port, ttl, lease, wait, fork }) {
  const redis = await connect(port);
  const Redlock = fork ? (await import('@sesamecare-oss/redlock')).Redlock : (await import('redlock')).default;
  const redlock = new Redlock([redis], {
    retryCount: Math.ceil(wait / 200),
    automaticExtensionThreshold: Math.min(500, Math.floor(lease / 2)),
  });
  redlock.on('error', () => {});
  return {
    async getOrLoad(key, loader) {
      const found = await redis.get(key);
      if (found !== null) return JSON.parse(found);
      return redlock.using([`lock:${key}`], lease, async () => {
        const again = await redis.get(key);
        if (again !== null) return JSON.parse(again);
        const value = await loader();
        await redis.set(key, JSON.stringify(value), 'PX', ttl);
        return value;
      });
    },
    async lock(name) {
      const lock = await redlock.acquire([name], lease);
      return () => lock.release();
    },
    evict: (key) => redis.del(key),
    close: () => redis.disconnect(),
  };
}
