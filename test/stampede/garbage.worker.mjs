// Prints how many bytes a hit leaves in the old generation, where only a full collection finds them.
import { getHeapSpaceStatistics } from 'node:v8';
import { createStampede, RedisStore } from 'nestjs-stampede-cache';

const CALLERS = 64;
const HITS = 12_000;
const KEYS = 1_000;

const { port, length } = JSON.parse(process.argv[2]);
const store = new RedisStore({ connection: { port }, namespace: 'garbage', commandTimeout: 5_000 });
const { cache, start, close } = createStampede({ store }, {});
await start();

const value = 'x'.repeat(length);
await Promise.all(Array.from({ length: KEYS }, (_, i) => cache.set(`key-${i}`, value + i, '10m')));

async function hit(count) {
  let next = 0;
  const caller = async () => {
    while (next < count)
      await cache.getOrLoad(`key-${next++ % KEYS}`, () => Promise.reject(new Error('no hit')), '10m');
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

function oldGeneration() {
  const spaces = getHeapSpaceStatistics().filter(({ space_name: name }) => /^(old|large_object)_space$/.test(name));
  return spaces.reduce((sum, { space_used_size: size }) => sum + size, 0);
}

await hit(HITS);
globalThis.gc();
const before = oldGeneration();
await hit(HITS);
// Twice: what survives the first moves to the old generation only with the second.
globalThis.gc({ type: 'minor' });
globalThis.gc({ type: 'minor' });
console.log((oldGeneration() - before) / HITS);
await close();
