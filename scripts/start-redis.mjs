import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './free-port.mjs';
import { whenParentEnds } from './when-parent-ends.mjs';

/**
 * Starts what `findRedis` found on a free loopback port, without persistence; a URL is used as it is. `stop()` ends it
 * and removes its files; should this process end first, in whatever way, the same is done.
 *
 * @returns {Promise<{ url: string, port: number, stop(): Promise<void> }>}
 */
export async function startRedis(found) {
  if (found.kind === 'url') return { url: found.url, port: Number(new URL(found.url).port || 6379), async stop() {} };
  const port = await freePort();
  const stop =
    found.kind === 'docker' ? await startContainer(found.image, port) : await startServer(found.binary, port);
  return { url: `redis://127.0.0.1:${port}`, port, stop };
}

async function startServer(binary, port) {
  const directory = mkdtempSync(join(tmpdir(), 'redis-'));
  const args = ['--bind', '127.0.0.1', '--port', port, '--dir', directory, '--save', '', '--appendonly', 'no'];
  const child = spawn(binary, args.map(String), { stdio: 'ignore' });
  const exited = new Promise((resolve) => {
    child.once('exit', resolve);
    child.once('error', resolve);
  });
  const callOff = whenParentEnds('kill -9 "$1"; rm -rf "$2"', child.pid ?? '', directory);
  const stop = async () => {
    child.kill('SIGKILL');
    await exited;
    callOff();
    rmSync(directory, { recursive: true, force: true });
  };
  const gone = exited.then(() => {
    throw new Error(`${binary} ended as soon as it was started.`);
  });
  try {
    await Promise.race([answers(port), gone]);
  } catch (error) {
    await stop();
    throw error;
  }
  gone.catch(() => {});
  return stop;
}

async function startContainer(image, port) {
  console.log(`Starting ${image} in Docker.`);
  const args = ['run', '--rm', '-d', '-p', `127.0.0.1:${port}:6379`, image, 'redis-server', '--save', ''];
  const { status, stdout, stderr } = spawnSync('docker', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`docker run ${image} failed: ${stderr}`);
  const id = stdout.trim().split('\n').at(-1);
  const callOff = whenParentEnds('docker rm -f "$1"', id);
  const stop = async () => {
    callOff();
    await once(spawn('docker', ['rm', '-f', id], { stdio: 'ignore' }), 'exit');
  };
  try {
    await answers(port);
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}

async function answers(port) {
  for (const end = Date.now() + 15_000; Date.now() < end; await sleep(25)) {
    if (await pings(port)) return;
  }
  throw new Error(`Redis on port ${port} did not answer within 15 seconds.`);
}

function pings(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
    const done = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(1000, () => done(false));
    socket.once('data', (reply) => done(String(reply).startsWith('+PONG')));
    socket.once('error', () => done(false));
    // Docker's port forwarding accepts and closes while nothing listens inside yet.
    socket.once('close', () => done(false));
  });
}
