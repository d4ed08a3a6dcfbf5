// async-cache-dedupe on its Redis storage. The calls of a key in one process share one run, the GET included. It knows whole
// seconds only, so a shorter TTL becomes one second.
import cacheDedupe from 'async-cache-dedupe';
import { connect } from './connect.mjs';

export async function create({ port, ttl }) {
  const client = await connect(port);
  const seconds = Math.max(1, Math.ceil(ttl / 1000));
  const cache = cacheDedupe.createCache({ ttl: seconds, storage: { type: 'redis', options: { client } } });
  cache.define('value', { serialize: ({ key }) => key }, ({ loader }) => loader());
  return {
    ttl: seconds * 1000,
    getOrLoad: (key, loader) => cache.value({ key, loader }),
    evict: (key) => cache.clear('value', { key }),
    close: () => client.disconnect(),
  };
}
