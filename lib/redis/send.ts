import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../core/clock.js';
import { CacheClosedError, NotReplicatedError, StoreReplyError } from '../core/errors.js';
import { type Client, isReplyError } from './client.js';
import type { Connection } from './connection.js';

/** Milliseconds before a command is sent again: the first time, and at most. */
const FIRST_PAUSE = 10;
const LONGEST_PAUSE = 100;

/**
 * Sends a command, and sends it again while there is no telling whether it arrived and its deadline has not passed. In the
 * order of the calls, as long as the connection holds: who releases a lock relies on it.
 *
 * @throws StoreReplyError when the answer is an error
 */
export function send<T>(connection: Connection, deadline: number, run: (client: Client) => Promise<T>): Promise<T> {
  // Nearly always it is ready, and replies: that costs one promise.
  const attempt = (client: Client) => run(client).catch((error) => sendAgain(connection, deadline, run, error));
  return connection.ready ? attempt(connection.ready) : whenReady(connection, deadline).then(attempt);
}

async function sendAgain<T>(
  connection: Connection,
  deadline: number,
  run: (client: Client) => Promise<T>,
  failure: unknown,
): Promise<T> {
  let error = failure;
  for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
    if (!mayBeSentAgain(error)) throw isReplyError(error) ? new StoreReplyError(error) : error;
    if (systemClock.now() + pause >= deadline) throw connection.explain('No reply from Redis', error);
    await sleep(pause);
    const client = connection.ready ?? (await whenReady(connection, deadline));
    try {
      return await run(client);
    } catch (again) {
      error = again;
    }
  }
}

async function whenReady(connection: Connection, deadline: number): Promise<Client> {
  await connection.whenReady(connection.patience(deadline - systemClock.now()));
  const client = connection.ready;
  if (!client || systemClock.now() >= deadline) throw connection.explain('No connection to Redis');
  return client;
}

/** Nothing was answered, or the answer was that nothing was done because the server is just changing. */
function mayBeSentAgain(error: unknown): boolean {
  if (error instanceof CacheClosedError || error instanceof NotReplicatedError) return false;
  return !isReplyError(error) || /^-?(LOADING|CLUSTERDOWN|TRYAGAIN|MASTERDOWN)|READONLY/.test(error.message);
}
