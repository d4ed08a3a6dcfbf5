import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { cpus, release, totalmem, type } from 'node:os';

/** Where and with what it was measured. */
export function environment(redisVersion) {
  const [cpu] = cpus();
  return {
    date: new Date().toISOString().slice(0, 10),
    processor: `${cpu?.model.trim() ?? 'unknown'}, ${cpus().length} cores`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GB`,
    system: `${type()} ${release()}`,
    node: process.version,
    redis: redisVersion,
    packages: { ...peers(), ...ours() },
  };
}

/** What bench/package.json names, in the versions that are there. */
function peers() {
  const { dependencies } = readJson(new URL('../package.json', import.meta.url));
  return Object.fromEntries(
    Object.keys(dependencies).flatMap((name) => {
      const version = versionOf(new URL(`../node_modules/${name}/package.json`, import.meta.url));
      return version ? [[name, version]] : [];
    }),
  );
}

function ours() {
  const { version } = readJson(new URL('../../package.json', import.meta.url));
  const require = createRequire(new URL('../../dist/lib/index.js', import.meta.url));
  return {
    'nestjs-stampede-cache': version,
    '@nestjs/core': readJson(require.resolve('@nestjs/core/package.json')).version,
  };
}

function versionOf(url) {
  try {
    return readJson(url).version;
  } catch {
    return undefined;
  }
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'));
}
