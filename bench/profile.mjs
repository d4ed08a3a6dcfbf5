import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { environment } from './harness/environment.mjs';
import { withProcesses } from './harness/processes.mjs';
import { RedisServer } from './harness/redis-server.mjs';
import { sum } from './harness/statistics.mjs';
import { format, markdown } from './harness/table.mjs';
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
    return { system: system.name, cpuPerCall: result.cpu / count, ...byFunction(raw, count) };
  });
}

/** Self times in µs a call, without what the process spent in waiting. */
function byFunction({ nodes, samples, timeDeltas }, count) {
  const selfTimes = new Map();
  for (const [i, id] of samples.entries()) selfTimes.set(id, (selfTimes.get(id) ?? 0) + timeDeltas[i]);
  const functions = new Map();
  for (const { id, callFrame } of nodes) {
    const time = (selfTimes.get(id) ?? 0) / count;
    const { part, name } = placeOf(callFrame);
    if (time === 0 || part === undefined) continue;
    const key = `${part}\n${name}`;
    const known = functions.get(key) ?? { part, name, time: 0 };
    known.time += time;
    functions.set(key, known);
  }
  const list = [...functions.values()].sort((left, right) => right.time - left.time);
  const total = sum(list.map(({ time }) => time));
  const parts = new Map();
  for (const { part, time } of list) parts.set(part, (parts.get(part) ?? 0) + time);
  return {
    total: round(total),
    parts: [...parts].sort(([, left], [, right]) => right - left).map(([part, time]) => ({ part, time: round(time) })),
    functions: list
      .filter(({ time }) => time >= LEAST * total)
      .map(({ part, name, time }) => ({ part, name, time: round(time) })),
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

function round(time) {
  return Number(time.toPrecision(3));
}

function print({ system, cpuPerCall, parts, functions, total }) {
  const share = (time) => `${format((100 * time) / total, 1)} %`;
  console.log(`\n## ${system}: ${format(cpuPerCall, 1)} µs of CPU a hit\n`);
  console.log(
    markdown([['part', 'µs', 'share'], ...parts.map(({ part, time }) => [part, format(time, 2), share(time)])]),
  );
  console.log('');
  const lines = functions.map(({ name, part, time }) => [name, part, format(time, 2), share(time)]);
  console.log(markdown([['function (self time)', 'part', 'µs', 'share'], ...lines]));
}
