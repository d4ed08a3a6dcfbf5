// The algorithm as it is usually written: GET; SET NX PX with a token; GET again; load; SET; compare and delete. Who is
// refused the lock sleeps 20 to 80 ms and starts over. The lease is not renewed.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from './connect.mjs';

const RELEASE = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`;

export async function create({ port, ttl, lease, wait }) {
  const redis = await connect(port);

  /** @returns what releases it, or undefined */
  async function tryLock(name) {
    const token = randomUUID();
    if ((await redis.set(name, token, 'PX', lease, 'NX')) !== 'OK') return undefined;
    return () => redis.eval(RELEASE, 1, name, token);
  }

  const pause = () => sleep(20 + Math.random() * 60);
  const giveUpAfter = (deadline) => {
    if (performance.now() > deadline) throw new Error('the lock was not free in time');
  };

  return {
    async getOrLoad(key, loader) {
      for (const deadline = performance.now() + wait; ; await pause()) {
        const found = await redis.get(key);
        if (found !== null) return JSON.parse(found);
        const release = await tryLock(`lock:${key}`);
        if (release) {
          try {
            const again = await redis.get(key);
            if (again !== null) return JSON.parse(again);
            const value = await loader();
            await redis.set(key, JSON.stringify(value), 'PX', ttl);
            return value;
          } finally {
            await release();
          }
        }
        giveUpAfter(deadline);
      }
    },
    async lock(name) {
      for (const deadline = performance.now() + wait; ; await pause()) {
        const release = await tryLock(name);
        if (release) return release;
        giveUpAfter(deadline);
      }
    },
    evict: (key) => redis.del(key),
    close: () => redis.disconnect(),
  };
}
