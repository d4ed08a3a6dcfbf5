import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../free-port.mjs';
import { startChild } from './start-child.mjs';

/**
 * Starts the built sample app in so many processes. `ready` resolves when each of them answers.
 *
 * @param {number} number
 * @param {{ databaseUrl: string, redisUrl?: string }} connections without `redisUrl` they use the memory store
 * @returns {Promise<{ urls: string[], ready: Promise<void>, crashed: Promise<never>, stop(): Promise<void> }>}
 */
export async function startInstances(number, { databaseUrl, redisUrl = '' }) {
  const ports = new Set();
  while (ports.size < number) ports.add(await freePort());
  const urls = [...ports].map((port) => `http://127.0.0.1:${port}`);
  const children = [...ports].map((port, index) =>
    startChild({
      name: `instance ${index + 1}`,
      script: 'dist/sample-app/main.js',
      env: { PORT: String(port), DATABASE_URL: databaseUrl, REDIS_URL: redisUrl },
      show: true,
    }),
  );
  const ready = Promise.all(urls.map((url) => answers(`${url}/health`)));
  ready.catch(() => {});
  return {
    urls,
    ready,
    crashed: Promise.race(children.map((child) => child.crashed)),
    async stop() {
      await Promise.all(children.map((child) => child.stop()));
    },
  };
}

async function answers(url) {
  for (const end = Date.now() + 30_000; Date.now() < end; await sleep(50)) {
    const response = await fetch(url).catch(() => undefined);
    await response?.arrayBuffer();
    if (response?.ok) return;
  }
  throw new Error(`${url} did not answer within 30 seconds.`);
}
