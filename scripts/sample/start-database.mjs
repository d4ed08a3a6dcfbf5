import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../free-port.mjs';
import { root } from '../setup.mjs';
import { startChild } from './start-child.mjs';

/**
 * The sample's database, its tables made: the one `DATABASE_URL` names (with `acceptUrl`), else an embedded one, PGlite
 * in a process of its own, which is empty at each start and gone at `stop()`.
 *
 * @param {{ acceptUrl?: boolean }} options
 * @returns {Promise<{ url: string, embedded: boolean, crashed: Promise<never>, stop(): Promise<void> }>}
 */
export async function startDatabase({ acceptUrl = false } = {}) {
  const given = acceptUrl && process.env.DATABASE_URL;
  const database = given ? named(given) : await startPglite();
  try {
    await Promise.race([makeTables(database), database.crashed]);
  } catch (error) {
    await database.stop();
    throw error;
  }
  return database;
}

function named(url) {
  return { url, embedded: false, crashed: new Promise(() => {}), async stop() {} };
}

async function startPglite() {
  const port = await freePort();
  const script = join(root, 'node_modules/@electric-sql/pglite-socket/dist/scripts/server.js');
  const args = ['--db=memory://', '--host=127.0.0.1', `--port=${port}`, '--max-connections=100'];
  const child = startChild({ name: 'database', script, args });
  return { ...child, url: `postgres://postgres@127.0.0.1:${port}/postgres`, embedded: true };
}

async function makeTables({ url, embedded }) {
  const client = await connect(url, embedded ? 30_000 : 0);
  try {
    await client.query(readFileSync(join(root, 'sample-app/schema.sql'), 'utf8'));
  } finally {
    await client.end();
  }
}

/** Tries for `patience` milliseconds: an embedded database needs some seconds to come up. */
async function connect(url, patience) {
  const { default: pg } = await import('pg');
  for (const end = Date.now() + patience; ; await sleep(50)) {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
    try {
      await client.connect();
      return client;
    } catch (error) {
      await client.end().catch(() => {});
      if (Date.now() >= end) throw new Error(`The database does not accept connections: ${error.message}`);
    }
  }
}
