import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { environment } from './harness/environment.mjs';
import { withProcesses } from './harness/processes.mjs';
import { RedisServer } from './harness/redis-server.mjs';
import { sum } from './harness/statistics.mjs';
import { format, profileTables } from './harness/table.mjs';
import { BASELINE, SYSTEMS } from './systems.mjs';

const CALLERS = 64;
const KEYS = 10_000;

/** What can be profiled, as a command of harness/worker.mjs. docs/performance.md has the hits. */
const PROFILES = {
  hits: {
    systems: [BASELINE, 'ours', 'ours-decorator', 'ours-near'],
    count: 200_000,
    command: 'calls',
    options: { prefix: 'k', distinct: KEYS, callers: CALLERS },
  },
  misses: {
    systems: [BASELINE, 'ours'],
    count: 40_000,
    command: 'calls',
    options: { prefix: 'new', cold: true, callers: CALLERS },
  },
  locks: {
    systems: ['redis-semaphore', 'ours'],
    count: 20_000,
    command: 'locks',
    options: { prefix: 'lock', callers: 16 },
  },
};
/** Microseconds between samples. */
const INTERVAL = 200;
const HERE = new URL('.', import.meta.url).href;
/** Functions below this part of the whole are not named. */
const LEAST = 0.004;

/** Where the CPU of a call goes, by V8's sampling profiler: for each system, a table by part of the code and one by function. */
export async function profile({ what = 'hits', folder, count = PROFILES[what]?.count }) {
  const chosen = PROFILES[what];
  if (!chosen) throw new Error(`There is no profile of "${what}": ${Object.keys(PROFILES).join(', ')}.`);
  const redis = await RedisServer.start();
  const systems = [];
  try {
    for (const system of SYSTEMS.filter(({ name }) => chosen.systems.includes(name))) {
      const profiled = await profileOne(redis, system, chosen, count).catch((error) =>
        console.error(`${system.name} is left out: ${error.message}`),
      );
      if (!profiled) continue;
      systems.push(profiled);
      print(profiled);
    }
  } finally {
    await redis.stop();
  }
  mkdirSync(folder, { recursive: true });
  const name = `profile-${what}`;
  const result = { name, environment: environment(redis.version), count, ...chosen.options, systems };
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(result, null, 1)}\n`);
}

async function profileOne(redis, system, { command, options }, count) {
  await redis.empty();
  return withProcesses(1, redis, system, {}, async ([process]) => {
    if (options.distinct) await process.call('fill', { ...options, count: options.distinct });
    await process.call(command, {
      ...options,
      prefix: options.distinct ? options.prefix : 'warm-up',
      count: count / 4,
    });
    const { result, profile: raw } = await process.call('profile', { ...options, command, interval: INTERVAL, count });
    return { system: system.name, ...byFunction(raw, result.cpu / count) };
  });
}

/**
 * Self times in µs of a call: the CPU that it took, shared out by the samples. What lies between two of them counts for two
 * intervals at the most; when it was longer, other processes had the core.
 */
function byFunction({ nodes, samples, timeDeltas }, cpu) {
  const weights = new Map();
  for (const [i, id] of samples.entries()) {
    weights.set(id, (weights.get(id) ?? 0) + Math.min(timeDeltas[i], 2 * INTERVAL));
  }
  const functions = new Map();
  for (const { id, callFrame } of nodes) {
    const weight = weights.get(id);
    const { part, name } = placeOf(callFrame);
    if (!weight || part === undefined) continue;
    const key = `${part}\n${name}`;
    const known = functions.get(key) ?? { part, name, weight: 0 };
    known.weight += weight;
    functions.set(key, known);
  }
  const list = [...functions.values()].sort((left, right) => right.weight - left.weight);
  const total = sum(list.map(({ weight }) => weight));
  const timeOf = (weight) => Number(((cpu * weight) / total).toPrecision(3));
  const parts = new Map();
  for (const { part, weight } of list) parts.set(part, (parts.get(part) ?? 0) + weight);
  return {
    cpu: Number(cpu.toPrecision(3)),
    parts: [...parts]
      .sort(([, left], [, right]) => right - left)
      .map(([part, weight]) => ({ part, time: timeOf(weight) })),
    functions: list
      .filter(({ weight }) => weight >= LEAST * total)
      .map(({ part, name, weight }) => ({ part, name, time: timeOf(weight) })),
  };
}

/** Which part of the code a function belongs to; none for waiting. */
function placeOf({ functionName, url, lineNumber }) {
  const name = functionName || 'anonymous';
  const place = (part, file) => ({ part, name: file ? `${name} ${file}:${lineNumber + 1}` : name });
  if (name === '(idle)') return { name };
  if (name === '(garbage collector)') return place('garbage collector');
  if (name === '(program)') return place('V8 and system calls');
  const [, ours] = /\/dist\/lib\/(.+)$/.exec(url) ?? [];
  if (ours) return place('this library', ours);
  const [, module, file] = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\/(.+)$/.exec(url) ?? [];
  if (module) return place(module, `${module}/${file}`);
  if (url.startsWith(HERE)) return place('the benchmark', `bench/${url.slice(HERE.length)}`);
  if (url.startsWith('node:')) return place('Node', url);
  return place('built-in functions');
}

function print(profiled) {
  console.log(`\n## ${profiled.system}: ${format(profiled.cpu, 1)} µs of CPU a call\n\n${profileTables(profiled)}`);
}
