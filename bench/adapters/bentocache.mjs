// bentocache: Redis alone, or memory and Redis with its bus. Its lock is one of the process, per key.
import { BentoCache, bentostore } from 'bentocache';
import { memoryDriver } from 'bentocache/drivers/memory';
import { redisBusDriver, redisDriver } from 'bentocache/drivers/redis';
import { connect } from './connect.mjs';

export async function create({ port, ttl, inMemory, serialize = true }) {
  const connection = await connect(port);
  let store = bentostore();
  if (inMemory) store = store.useL1Layer(memoryDriver({ maxItems: inMemory, serialize }));
  store = store.useL2Layer(redisDriver({ connection }));
  if (inMemory) store = store.useBus(redisBusDriver({ connection }));
  const cache = new BentoCache({ default: 'bench', ttl, stores: { bench: store } });
  return {
    getOrLoad: (key, loader) => cache.getOrSet({ key, ttl, factory: loader }),
    evict: (key) => cache.delete({ key }),
    close: () => cache.disconnectAll(),
  };
}
