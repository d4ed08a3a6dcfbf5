import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { environment } from './harness/environment.mjs';
import { withProcesses } from './harness/processes.mjs';
import { RedisServer } from './harness/redis-server.mjs';
import { sum } from './harness/statistics.mjs';
import { format, profileTables } from './harness/table.mjs';
import { BASELINE, SYSTEMS } from './systems.mjs';

const PROFILED = [BASELINE, 'ours', 'ours-decorator', 'ours-near'];
const COUNT = 200_000;
const CALLERS = 64;
const KEYS = 10_000;
/** Microseconds between samples. */
const INTERVAL = 200;
/** Functions below this part of the whole are not named. */
const LEAST = 0.004;

/** Where a hit's CPU goes, by V8's sampling profiler: for each system, a table by part of the code and one by function. */
export async function profile({ folder, count = COUNT }) {
  const redis = await RedisServer.start();
  const systems = [];
  try {
    for (const system of SYSTEMS.filter(({ name }) => PROFILED.includes(name))) {
      const profiled = await profileOne(redis, system, count).catch((error) =>
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
  const result = {
    name: 'profile',
    environment: environment(redis.version),
    count,
    callers: CALLERS,
    keys: KEYS,
    systems,
  };
  writeFileSync(join(folder, 'profile.json'), `${JSON.stringify(result, null, 1)}\n`);
}

async function profileOne(redis, system, count) {
  await redis.empty();
  return withProcesses(1, redis, system, {}, async ([process]) => {
    const calls = { prefix: 'k', distinct: KEYS, callers: CALLERS };
    await process.call('fill', { ...calls, count: KEYS });
    await process.call('calls', { ...calls, count: Math.ceil(count / 4), seed: 7 });
    const { result, profile: raw } = await process.call('profile', {
      ...calls,
      command: 'calls',
      interval: INTERVAL,
      count,
    });
    return { system: system.name, ...byFunction(raw, result.cpu / count) };
  });
}

/**
 * Self times in µs of a hit: the CPU that it took, shared out by the samples. What lies between two of them counts for two
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
  if (url.includes('/bench/')) return place('the benchmark', url.split('/bench/').at(-1));
  if (url.startsWith('node:')) return place('Node', url);
  return place('built-in functions');
}

function print(profiled) {
  console.log(`\n## ${profiled.system}: ${format(profiled.cpu, 1)} µs of CPU a hit\n\n${profileTables(profiled)}`);
}
