import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { whenParentEnds } from '../when-parent-ends.mjs';

/** Milliseconds; a busy machine is no fault. */
const PATIENCE = 60_000;

/** What an application in two processes on one Redis must do. Each check goes on from the state that the last one left. */
export async function smoke(check, { folder, node, platform, redisUrl }) {
  const processes = [];
  const start = async () => {
    const child = startApp({ folder, node, platform, redisUrl });
    processes.push(child);
    return child.ready;
  };
  try {
    let a;
    let b;
    const booted = await check('boots twice', async () => {
      [a, b] = await Promise.all([start(), start()]);
    });
    if (!booted) return;
    const counts = async (name) => (await a.ask('GET', 'counts'))[name] + (await b.ask('GET', 'counts'))[name];

    await check('@CacheAside: what one process loaded, the other finds', async () => {
      assert.deepEqual(await a.ask('GET', 'products/1'), { id: '1' });
      assert.deepEqual(await b.ask('GET', 'products/1'), { id: '1' });
      assert.equal(await counts('products'), 1);
    });
    await check('@CacheEvict: it is loaded anew, once', async () => {
      await b.ask('DELETE', 'products/1');
      await a.ask('GET', 'products/1');
      await b.ask('GET', 'products/1');
      assert.equal(await counts('products'), 2);
    });
    await check('@CacheResponse: the handler runs once', async () => {
      assert.deepEqual(await a.ask('GET', 'report'), { report: 'monthly' });
      assert.deepEqual(await b.ask('GET', 'report'), { report: 'monthly' });
      assert.equal(await counts('reports'), 1);
    });
    await check('getOrLoad: one load for 50 callers in each of two processes', async () => {
      const [[ofA, ...moreA], [ofB, ...moreB]] = await Promise.all([
        a.ask('POST', 'crowd/hot'),
        b.ask('POST', 'crowd/hot'),
      ]);
      assert.equal(ofA, ofB);
      assert.deepEqual([...moreA, ...moreB], []);
      assert.equal(await counts('crowd'), 1);
    });
    await check('withLock: one at a time, with growing fencing tokens', async () => {
      const all = await Promise.all([a, b, a, b].map(({ ask }) => ask('POST', 'locked/report')));
      assert.deepEqual(
        all.map(({ inside }) => inside),
        [1, 1, 1, 1],
      );
      assert.equal(new Set(all.map(({ fencingToken }) => fencingToken)).size, 4);
    });
    await check('app.close(): the process exits by itself', async () => {
      a.tellToClose();
      assert.deepEqual(await a.exit(), { code: 0, signal: null });
    });
    await check('SIGTERM: the process exits', async () => {
      b.kill('SIGTERM');
      const { code, signal } = await b.exit();
      assert(code === 0 || signal === 'SIGTERM', `It exited by ${signal ?? code}.`);
    });
  } finally {
    for (const { kill } of processes) kill('SIGKILL');
  }
}

function startApp({ folder, node, platform, redisUrl }) {
  const child = spawn(node, ['dist/main.js'], {
    cwd: folder,
    env: { ...process.env, NODE_OPTIONS: '', PLATFORM: platform, REDIS_URL: redisUrl },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const callOff = whenParentEnds('kill -9 "$1"', child.pid);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (text) => {
      output += text;
    });
  }
  const exited = once(child, 'exit').then(([code, signal]) => {
    callOff();
    return { code, signal };
  });
  const kill = (signal) => child.kill(signal);
  const within = (promise, what) =>
    Promise.race([
      promise,
      sleep(PATIENCE, undefined, { ref: false }).then(() => {
        throw new Error(`${what} took more than ${PATIENCE} ms. It printed:\n${output}`);
      }),
    ]);
  const ready = within(
    Promise.race([
      once(child, 'message'),
      exited.then(({ code, signal }) => {
        throw new Error(`The application ended (${signal ?? code}). It printed:\n${output}`);
      }),
    ]),
    'The start',
  ).then(([{ url }]) => ({
    kill,
    tellToClose: () => child.send('close'),
    exit: () => within(exited, 'The exit'),
    async ask(method, path) {
      const response = await fetch(`${url}/${path}`, { method, signal: AbortSignal.timeout(PATIENCE) });
      const body = await response.text();
      assert(response.ok, `${method} ${path}: ${response.status} ${body}\n${output}`);
      return response.headers.get('content-type')?.includes('json') ? JSON.parse(body) : body;
    },
  }));
  return { ready, kill };
}
