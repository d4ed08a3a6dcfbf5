// What `npm start` runs: the sample app in four processes on one Redis and one database, and a stampede of 1,000 callers
// on one cold key, without and with the cache. Then it serves until Ctrl-C; with `--once` it ends after the table. It fails
// unless the cache let exactly one query through.
import { setTimeout as sleep } from 'node:timers/promises';
import { build } from './build.mjs';
import { findRedis, missingRedis } from './find-redis.mjs';
import { compare, faultOf, tableOf } from './sample/compare.mjs';
import { openCounters } from './sample/open-counters.mjs';
import { startDatabase } from './sample/start-database.mjs';
import { startInstances } from './sample/start-instances.mjs';
import { ensureDependencies } from './setup.mjs';
import { startRedis } from './start-redis.mjs';

const INSTANCES = 4;
const CALLERS = 1_000;
const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };

const once = process.argv.includes('--once');
const parent = process.ppid;
/** What runs, each with how to stop it. */
const running = [];
/** Aborts when one of those ends by itself, or when we are told to end. */
const interruption = new AbortController();
const interrupted = new Promise((_, reject) => {
  interruption.signal.addEventListener('abort', () => reject(interruption.signal.reason));
});
interrupted.catch(() => {});

class ToldToEnd extends Error {}

try {
  await Promise.race([run(), interrupted]);
} catch (error) {
  // When a process crashes, the first to fail here is often a request to it.
  const reason = await Promise.race([interrupted.catch((cause) => cause), sleep(500, error)]);
  if (!(reason instanceof ToldToEnd)) {
    console.error(`\n${reason.message}`);
    process.exitCode = 1;
  }
}
for (const { stop } of running.reverse()) await stop();
process.exit();

async function run() {
  ensureDependencies();
  build('nestjs-stampede-cache', { sources: ['lib'], output: 'dist/lib' });
  build('sample-app', { sources: ['sample-app', 'dist/lib'], output: 'dist/sample-app' });
  const found = findRedis({ acceptUrl: true, acceptDocker: true, allowInstall: true });
  if (found?.kind === 'url' && !URL.canParse(found.url)) {
    throw new Error('REDIS_URL must be a URL, such as redis://localhost:6379.');
  }
  // Up to here a signal ends this process at once, and there was nothing to stop.
  endWhenTold();

  const redis = found && (await keep(startRedis(found)));
  describeRedis(found, redis);
  const database = await keep(startDatabase({ acceptUrl: true }));
  console.log(`Database: ${database.embedded ? `PGlite, ${database.url}` : 'DATABASE_URL'}`);
  const connections = { databaseUrl: database.url, redisUrl: redis?.url };
  const counters = await openCounters(connections);
  const instances = await keep(startInstances(redis ? INSTANCES : 1, connections));
  await instances.ready;

  const { urls } = instances;
  const processes = urls.length === 1 ? 'one process' : `${urls.length} processes`;
  console.log(`\n${CALLERS} callers at once, over ${processes}, ask for one product whose key is cold …\n`);
  const comparison = await compare({ instances: urls, callers: CALLERS, counters, signal: interruption.signal });
  await counters.close();
  console.log(tableOf(comparison));

  const fault = faultOf(comparison);
  if (fault) console.error(`\nThis is not as promised: ${fault}.`);
  process.exitCode = fault ? 1 : 0;
  if (once) return;
  console.log(whatToTry(urls));
  await interrupted;
}

/** Remembers what is being started, to stop it; of its processes none may end by itself. */
async function keep(starting) {
  const resource = await starting;
  running.push(resource);
  resource.crashed?.catch((error) => interruption.abort(error));
  return resource;
}

function endWhenTold() {
  const end = (code) => {
    process.exitCode ??= code;
    interruption.abort(new ToldToEnd());
  };
  // Not `once`: npm passes on a Ctrl-C that has already reached us.
  for (const [signal, code] of Object.entries(SIGNALS)) process.on(signal, () => end(code));
  // npm passes a SIGTERM on to the shell in between, which ends without a word to us.
  if (process.env.npm_lifecycle_event) setInterval(() => process.ppid !== parent && end(SIGNALS.SIGTERM), 200).unref();
}

function describeRedis(found, redis) {
  if (found?.kind === 'url') console.log('Redis: REDIS_URL');
  else if (found) console.log(`Redis: ${found.image ?? `${found.binary} ${found.version}`}, ${redis.url}`);
  else {
    console.log(`${missingRedis()}\n
For now the memory store takes its place, in ONE process. It knows the callers of its own process only: with four
processes it would be one query each.\n`);
  }
}

function whatToTry(urls) {
  const [first, last] = [urls[0], urls.at(-1)];
  return `
Serving on ${urls.join(', ')}

  curl ${first}/products/1
  curl ${last}/products/1      # another instance, the same queryNumber: no new query
  curl -X PATCH -d priceInCents=990 ${last}/products/1
  curl ${first}/products/1      # the new price at once, by a new query
  curl ${first}/products/1/uncached
  curl -X POST ${first}/reports/nightly      # under a lock: written once a day, whoever is asked
  curl ${first}/reports/nightly      # a cached route

Ctrl-C stops everything.`;
}
