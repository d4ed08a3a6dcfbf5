/**
 * What reached the database and Redis, in their own count. Fails when Redis does not answer.
 *
 * @param {{ databaseUrl: string, redisUrl?: string }} connections
 */
export async function openCounters({ databaseUrl, redisUrl }) {
  const { default: pg } = await import('pg');
  const { Redis } = await import('ioredis');
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  pool.on('error', () => {});
  const redis = redisUrl && (await connect(new Redis(redisUrl, { lazyConnect: true, retryStrategy: null })));
  return {
    async read() {
      return { queries: await countQueries(pool), commands: await countCommands(redis) };
    },
    async close() {
      redis?.disconnect();
      await pool.end();
    },
  };
}

async function connect(redis) {
  let reason;
  redis.on('error', (error) => {
    reason = error.message;
  });
  try {
    await redis.connect();
    return redis;
  } catch (error) {
    throw new Error(`Redis does not answer: ${reason ?? error.message}`);
  }
}

/** The slow query itself draws from a sequence of the database, each time it runs. */
async function countQueries(pool) {
  const { rows } = await pool.query('select last_value, is_called from catalog_sample.slow_queries');
  const [{ last_value, is_called }] = rows;
  return is_called ? Number(last_value) : 0;
}

/** Every command that Redis ran, those inside scripts too, except this question; `undefined` where it may not be asked. */
async function countCommands(redis) {
  const info = await redis?.info('commandstats').catch(() => undefined);
  if (info === undefined) return undefined;
  const commands = [...info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].filter(([, name]) => name !== 'info');
  return commands.reduce((sum, [, , calls]) => sum + Number(calls), 0);
}
