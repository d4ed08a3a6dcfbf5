import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';

const OLDEST = '6.2';

/**
 * Finds a Redis (or Valkey) for scripts to start or use, or undefined; `missingRedis()` then says what to do.
 *
 * In this order: `REDIS_URL` (only with `acceptUrl`), `REDIS_SERVER` (a binary), redis-server or valkey-server on the
 * PATH, Docker (only with `acceptDocker`, and only if its engine answers), and with `allowInstall`, as root on
 * Debian and its like, the packages redis-server and redis-sentinel.
 *
 * @param {{ allowInstall?: boolean, acceptUrl?: boolean, acceptDocker?: boolean }} options
 * @returns {{ kind: 'url', url: string }
 *   | { kind: 'server', binary: string, sentinel?: string, version: string }
 *   | { kind: 'docker', image: string } | undefined}
 */
export function findRedis({ allowInstall = false, acceptUrl = false, acceptDocker = false } = {}) {
  if (acceptUrl && process.env.REDIS_URL) return { kind: 'url', url: process.env.REDIS_URL };
  if (process.env.REDIS_SERVER) return namedServer(process.env.REDIS_SERVER);
  return (
    serverOnPath() ??
    (acceptDocker && dockerAnswers() ? { kind: 'docker', image: 'redis:7-alpine' } : undefined) ??
    (allowInstall && canInstall() && install() ? serverOnPath() : undefined)
  );
}

/** What to tell a person whose machine has no Redis that could be used. */
export function missingRedis() {
  return [
    `A redis-server or valkey-server, ${OLDEST} or newer, is needed and was not found. One of these helps:`,
    '  Debian, Ubuntu   sudo apt-get install redis-server',
    '  macOS            brew install redis',
    '  elsewhere        https://redis.io/docs/latest/operate/oss_and_stack/install/',
    '  already there    set REDIS_SERVER to the path of the redis-server binary',
  ].join('\n');
}

function namedServer(binary) {
  const server = describeServer(binary);
  if (!server) throw new Error(`REDIS_SERVER is "${binary}", which is not a working Redis server, ${OLDEST} or newer.`);
  return server;
}

function serverOnPath() {
  for (const name of ['redis-server', 'valkey-server']) {
    const server = describeServer(onPath(name));
    if (server) return server;
  }
  return undefined;
}

function describeServer(binary) {
  if (!binary) return undefined;
  const { stdout } = spawnSync(binary, ['--version'], { encoding: 'utf8' });
  const version = /\bv=(\d+\.\d+\.\d+)/.exec(stdout ?? '')?.[1];
  if (!version) return undefined;
  if (version.localeCompare(OLDEST, 'en', { numeric: true }) < 0) {
    console.log(`${binary} is version ${version}, older than ${OLDEST}: not used.`);
    return undefined;
  }
  const sentinel = sentinelBeside(binary);
  return { kind: 'server', binary, version, ...(sentinel && { sentinel }) };
}

function sentinelBeside(binary) {
  const sentinel = join(dirname(binary), binary.includes('valkey') ? 'valkey-sentinel' : 'redis-sentinel');
  return isExecutable(sentinel) ? sentinel : undefined;
}

function onPath(name) {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** A Docker client without an engine is common; only an answer counts. */
function dockerAnswers() {
  return spawnSync('docker', ['info'], { stdio: 'ignore', timeout: 3000 }).status === 0;
}

function canInstall() {
  return process.getuid?.() === 0 && existsSync('/etc/debian_version') && onPath('apt-get') !== undefined;
}

function install() {
  console.log('Installing the packages redis-server and redis-sentinel (apt-get); no system service is started.');
  return withoutServiceStart(
    () => aptGet('update') && aptGet('install', '--yes', '--no-install-recommends', 'redis-server', 'redis-sentinel'),
  );
}

/** Debian starts a service as it installs it, unless this file of its policy says no. */
function withoutServiceStart(action) {
  const policy = '/usr/sbin/policy-rc.d';
  const ours = !existsSync(policy);
  if (ours) writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    return action();
  } finally {
    if (ours) rmSync(policy, { force: true });
    // The policy holds for now; the next boot would start what the packages enabled.
    if (existsSync('/run/systemd/system')) {
      spawnSync('systemctl', ['disable', 'redis-server', 'redis-sentinel'], { stdio: 'ignore' });
    }
  }
}

function aptGet(...args) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  const { status, stdout, stderr } = spawnSync('apt-get', ['-q', ...args], { env, encoding: 'utf8' });
  if (status !== 0) console.error(`apt-get ${args[0]} failed:\n${stdout ?? ''}${stderr ?? ''}`);
  return status === 0;
}
