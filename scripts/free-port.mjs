import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * A loopback port that nobody listens on; never 6379.
 *
 * It lies below the ports that systems hand out to outgoing connections (from 32768 on): a client that reconnects to a
 * stopped server in that range can be given the server's own port and end up connected to itself. And it lies below
 * 20000, so that a Redis Cluster's bus (port + 10000) never meets another server's port.
 *
 * No port is given twice: its first server may not listen yet, or may be down for a moment. Nor do two of jest's workers
 * (the first three of them) ever give the same.
 */
export async function freePort() {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = 10_000 + WORKERS * Math.floor((Math.random() * 10_000) / WORKERS) + worker;
    if (given.has(port)) continue;
    given.add(port);
    if ((await isFree(port)) && (await isFree(port + 10_000))) return port;
  }
  throw new Error('No free loopback port between 10000 and 19999.');
}

/** Jest's, which number from 1, and everybody else as 0. */
const WORKERS = 4;
const worker = Number(process.env.JEST_WORKER_ID ?? 0) % WORKERS;
const given = new Set();

async function isFree(port) {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
