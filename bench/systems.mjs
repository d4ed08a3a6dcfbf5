// What is measured. A line here and a file in adapters/ make a system.
//   name      what it is called in tables and by --only
//   adapter   its file in adapters/; `options` go to its create()
//   kind      'bound': protects nothing, or shares nothing: what it costs at the least · 'peer' · 'ours'
//   only      the workloads it is in, by default all that its adapter has the methods for
//   quick     whether --quick takes it
//   inMemory  hits are answered from the process's own memory, which holds so many
//   noRedis   no other process knows of what it does

const HITS = ['hot', 'hits', 'sequential', 'sizes', 'miss', 'trace'];
const IN_MEMORY = 50_000;
const OURS = { adapter: 'nestjs-stampede-cache', kind: 'ours' };

/** What all are compared with: a bare GET and JSON.parse. */
export const BASELINE = 'ioredis';

export const SYSTEMS = [
  { name: 'ioredis', adapter: 'ioredis', kind: 'bound', quick: true },
  { name: 'ioredis-autopipelined', adapter: 'ioredis', kind: 'bound', only: HITS, options: { autoPipelining: true } },
  { name: 'ioredis-6', adapter: 'ioredis', kind: 'bound', only: [...HITS, 'start'], options: { version: 6 } },
  { name: 'node-redis', adapter: 'node-redis', kind: 'bound', only: [...HITS, 'start'], quick: true },
  { name: 'textbook', adapter: 'textbook', kind: 'peer', quick: true },
  { name: 'bentocache', adapter: 'bentocache', kind: 'peer', quick: true },
  { name: 'cache-manager', adapter: 'cache-manager', kind: 'peer' },
  { name: 'cacheable', adapter: 'cacheable', kind: 'peer' },
  { name: 'cachified', adapter: 'cachified', kind: 'peer' },
  { name: 'async-cache-dedupe', adapter: 'async-cache-dedupe', kind: 'peer', quick: true },
  { name: 'redlock', adapter: 'redlock', kind: 'peer', quick: true },
  { name: 'sesamecare-redlock', adapter: 'redlock', kind: 'peer', options: { fork: true } },
  { name: 'redis-semaphore', adapter: 'redis-semaphore', kind: 'peer', quick: true },
  { name: 'bentocache-memory', adapter: 'bentocache', kind: 'peer', inMemory: IN_MEMORY },
  {
    name: 'bentocache-memory-objects',
    adapter: 'bentocache',
    kind: 'peer',
    inMemory: IN_MEMORY,
    options: { serialize: false },
  },
  { name: 'cache-manager-memory', adapter: 'cache-manager', kind: 'peer', inMemory: IN_MEMORY },
  { name: 'cacheable-memory', adapter: 'cacheable', kind: 'peer', inMemory: IN_MEMORY },
  { name: 'lru-cache', adapter: 'lru-cache', kind: 'bound', inMemory: IN_MEMORY, noRedis: true, quick: true },
  { ...OURS, name: 'ours', quick: true },
  { ...OURS, name: 'ours-many', only: ['bulk'], options: { together: true } },
  { ...OURS, name: 'ours-ioredis-6', only: [...HITS, 'start'], options: { ownClient: true } },
  {
    ...OURS,
    name: 'ours-decorator',
    only: [...HITS, 'stampede', 'start', 'memory'],
    quick: true,
    options: { through: 'decorator' },
  },
  {
    ...OURS,
    name: 'ours-interceptor',
    only: [...HITS, 'stampede', 'start', 'memory'],
    options: { through: 'interceptor' },
  },
  { ...OURS, name: 'ours-near', inMemory: IN_MEMORY, quick: true },
  {
    ...OURS,
    name: 'ours-near-decorator',
    only: HITS,
    inMemory: IN_MEMORY,
    options: { through: 'decorator' },
  },
];

/** Makes an adapter's instance. `settings`: `port`, and `ttl`, `lease` and `wait` in milliseconds. */
export async function open(name, settings) {
  const { adapter, options, inMemory } = SYSTEMS.find((system) => system.name === name);
  const { create } = await import(`./adapters/${adapter}.mjs`);
  return create({ ...settings, inMemory, ...options });
}
