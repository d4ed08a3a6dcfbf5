// Cache-aside without any protection: GET and JSON.parse; on a miss load, and SET with PX. For hits this is what one
// connection of ioredis can do, for a stampede what happens without a cache that knows of it.
import { connect } from './connect.mjs';

export async function create({ port, ttl, autoPipelining = false, version }) {
  const Client = version === 6 ? (await import('ioredis6')).Redis : undefined;
  const redis = await connect(port, { enableAutoPipelining: autoPipelining }, Client);
  return {
    async getOrLoad(key, loader) {
      const found = await redis.get(key);
      if (found !== null) return JSON.parse(found);
      const value = await loader();
      await redis.set(key, JSON.stringify(value), 'PX', ttl);
      return value;
    },
    async getMany(keys, load) {
      const values = (await redis.mget(...keys)).map((text) => (text === null ? undefined : JSON.parse(text)));
      const missing = keys.filter((_, i) => values[i] === undefined);
      if (missing.length === 0) return values;
      const loaded = new Map((await load(missing)).map((value, i) => [missing[i], value]));
      const pipeline = redis.pipeline();
      for (const [key, value] of loaded) pipeline.set(key, JSON.stringify(value), 'PX', ttl);
      await pipeline.exec();
      return keys.map((key, i) => values[i] ?? loaded.get(key));
    },
    evict: (key) => redis.del(key),
    close: () => redis.disconnect(),
  };
}
