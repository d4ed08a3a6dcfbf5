import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chartOf } from './harness/chart.mjs';
import { environment } from './harness/environment.mjs';
import { withProcesses } from './harness/processes.mjs';
import { RedisServer } from './harness/redis-server.mjs';
import { rowsOf } from './harness/rows.mjs';
import { tables } from './harness/table.mjs';
import { SYSTEMS } from './systems.mjs';

/** A system that failed so often in a workload is given up there; its failures stay in the table. */
const GIVEN_UP = 2;

/**
 * Runs workloads, each with all systems in alternating rounds, prints their tables, and writes what came of it.
 *
 * @param {{ workloads: object[], systems: object[], rounds: number, quick: boolean, hurry: boolean, count?: number, folder: string }} options
 */
export async function run({ workloads, systems, rounds, quick, hurry, count, folder }) {
  mkdirSync(folder, { recursive: true });
  const redis = await RedisServer.start();
  try {
    const able = await whatTheyCan(redis, systems);
    for (const workload of workloads) {
      const { only, needs = ['getOrLoad'] } = workload;
      const taking = able.filter(
        ({ system, methods }) =>
          (!system.only || system.only.includes(workload.name)) &&
          (!only || only.includes(system.name)) &&
          !(workload.multiProcess && system.noRedis) &&
          (workload.suits?.(system) ?? true) &&
          needs.every((method) => methods.includes(method)),
      );
      const numbers = { ...(quick ? (workload.quick ?? workload.full) : workload.full), ...(count && { count }) };
      const limit = Math.min(rounds, quick ? rounds : (workload.rounds ?? rounds));
      const result = await runOne({
        redis,
        workload,
        systems: taking.map(({ system }) => system),
        numbers,
        rounds: limit,
        hurry,
      });
      print(result);
      write(folder, result);
    }
  } finally {
    await redis.stop();
  }
}

/** Opens each system once: what its adapter has, and whether this build of the library has it. */
async function whatTheyCan(redis, systems) {
  const able = [];
  for (const system of systems) {
    try {
      const methods = await withProcesses(1, redis, system, {}, async ([{ ready }]) => ready.methods);
      able.push({ system, methods });
    } catch (error) {
      if (!/^UnavailableError/.test(error.message)) throw new Error(`${system.name}: ${error.message}`);
      tell(`${system.name} is left out: ${error.message}`);
    }
  }
  return able;
}

async function runOne({ redis, workload, systems, numbers, rounds, hurry }) {
  const start = performance.now();
  const samples = [];
  const failures = new Map();
  for (let round = 0; round < rounds; round++) {
    for (const system of inTurn(systems, round)) {
      if ((failures.get(system.name) ?? 0) >= GIVEN_UP) continue;
      try {
        const measured = await workload.measure({ redis, system, round, numbers, hurry });
        for (const sample of [measured].flat()) samples.push({ system: system.name, round, ...sample });
      } catch (error) {
        failures.set(system.name, (failures.get(system.name) ?? 0) + 1);
        const [message] = error.message.split('\n');
        samples.push({ system: system.name, round, failed: true, faults: [`FAILED: ${message}`] });
        tell(`${workload.name}, ${system.name}, round ${round + 1}: ${message}`);
      }
    }
    tell(`${workload.name}: round ${round + 1} of ${rounds}`);
  }
  const { name, title, about, columns, chart } = workload;
  const order = new Map(systems.map((system, i) => [system.name, i]));
  const rows = rowsOf(samples, workload).sort((left, right) => order.get(left.system) - order.get(right.system));
  return {
    name,
    title,
    about,
    environment: environment(redis.version),
    numbers,
    rounds,
    seconds: Math.round((performance.now() - start) / 1000),
    columns,
    ...(chart && { chart }),
    rows: inOrderOfVariants(rows, samples),
  };
}

/** Forwards and backwards, from another place each round, so that nobody always follows the same. */
function inTurn(systems, round) {
  const from = systems.length === 0 ? 0 : (round * 5) % systems.length;
  const turned = [...systems.slice(from), ...systems.slice(0, from)];
  return round % 2 === 0 ? turned : turned.reverse();
}

function inOrderOfVariants(rows, samples) {
  const variants = [...new Set(samples.map(({ variant }) => variant))];
  return variants.flatMap((variant) => rows.filter((row) => row.variant === variant));
}

function print(result) {
  const { title, about, environment: where, rounds, seconds } = result;
  console.log(`\n## ${title}\n\n${about}\n\n${tables(result)}\n`);
  const { date, processor, node, redis } = where;
  console.log(
    `${date} · ${processor} · Node ${node} · Redis ${redis} · medians of ${rounds} round${rounds === 1 ? '' : 's'} · ${seconds} s`,
  );
}

function write(folder, result) {
  writeFileSync(join(folder, `${result.name}.json`), `${JSON.stringify(result, null, 1)}\n`);
  if (!result.chart || result.rows.length === 0) return;
  const kinds = new Map(SYSTEMS.map(({ name, kind }) => [name, kind]));
  writeFileSync(join(folder, `${result.name}.svg`), chartOf(result, kinds));
}

function tell(message) {
  console.error(`${new Date().toISOString().slice(11, 19)} ${message}`);
}
