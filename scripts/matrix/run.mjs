// `npm run test:matrix`: the package as its users have it. The tarball is installed into fresh applications, and each has to
// compile, test, boot and behave, on Express and on Fastify. `--all` does it on Node 22 and 24 as well, and with the oldest
// peers; `--only=nest11` (nest12, oldest) does only that one. `--keep` leaves the applications there. What npm downloaded once
// comes from its cache.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findRedis, missingRedis } from '../find-redis.mjs';
import { pack } from '../package/pack.mjs';
import { startRedis } from '../start-redis.mjs';
import { APPS, installNode, makeApp, OLDEST } from './apps.mjs';
import { smoke } from './smoke.mjs';

const OTHER_NODES = [22, 24];

const all = process.argv.includes('--all');
const only = process.argv.find((argument) => argument.startsWith('--only='))?.slice('--only='.length);
const apps = [...APPS, OLDEST].filter(({ folder }) => (only ? folder === only : all || folder !== OLDEST.folder));
const base = mkdtempSync(join(tmpdir(), 'matrix-'));
if (process.argv.includes('--keep')) console.log(`The applications are in ${base}`);
else process.on('exit', () => rmSync(base, { recursive: true, force: true }));
process.on('SIGINT', () => process.exit(130));
process.on('SIGTERM', () => process.exit(143));
const counts = { passed: 0, failed: 0, skipped: 0 };

try {
  if (!findRedis({ allowInstall: true })) throw new Error(missingRedis());
  const { tarball } = pack();
  const nodes = [process.execPath, ...(all ? OTHER_NODES.map((major) => installNode(major, base)) : [])];
  for (const app of apps) await testApp(app, nodes, tarball);
} catch (error) {
  counts.failed += 1;
  console.error(error.message);
}
const result = `${counts.passed} passed, ${counts.failed} failed`;
if (process.env.MATRIX_COUNTS) {
  writeFileSync(process.env.MATRIX_COUNTS, JSON.stringify(counts));
  console.log(`\nTo be added to what the tests count: ${result}`);
} else {
  console.log(`\n${result}`);
}
process.exitCode = counts.failed > 0 || counts.passed === 0 ? 1 : 0;

async function testApp(app, nodes, tarball) {
  console.log(`\n${app.name}`);
  const folder = makeApp(app, { base, tarball });
  const run = (node, args, { error } = {}) => {
    const { status, stdout, stderr } = spawnSync(node, args, {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, NODE_OPTIONS: '' },
      timeout: 300_000,
    });
    const fits = error ? status !== 0 && stdout.includes(error) : status === 0;
    if (!fits) throw new Error(`${args.join(' ')} gave ${status}:\n${stdout}${stderr}`);
  };

  const tool = (node, [file, ...args], options) => run(node, [join('node_modules', file), ...args], options);
  const tsc = (config, options) => tool(process.execPath, ['typescript/bin/tsc', '-p', config], options);

  const compiles = await check(`compiles with moduleResolution ${app.options?.moduleResolution ?? 'nodenext'}`, () =>
    tsc('tsconfig.json'),
  );
  for (const { name, error } of app.typeChecks) {
    const what = error ? `is told ${error} by` : 'compiles with';
    await check(`${what} moduleResolution ${name}`, () => tsc(`tsconfig.${name}.json`, { error }));
  }
  if (!compiles) return;

  for (const node of nodes) {
    const { stdout: version } = spawnSync(node, ['--version'], { encoding: 'utf8' });
    console.log(`  Node ${version.trim()}`);
    if (app.unitTests)
      await check(`its unit tests (${app.unitTests[0].split('/')[0]})`, () => tool(node, app.unitTests));
    await check('one class however it is imported', () => run(node, ['one-class.mjs']));
    await check('two copies: one cache for decorated methods, a clear error for classes', () =>
      run(node, ['two-copies.mjs']),
    );
    for (const platform of ['express', 'fastify']) {
      // Each on a Redis that knows nothing of the others.
      const fresh = await startRedis(findRedis());
      try {
        await smoke((name, body) => check(`${platform}: ${name}`, body), {
          folder,
          node,
          platform,
          redisUrl: fresh.url,
        });
      } finally {
        await fresh.stop();
      }
    }
  }
}

async function check(name, body) {
  try {
    await body();
    counts.passed += 1;
    console.log(`    ✓ ${name}`);
    return true;
  } catch (error) {
    counts.failed += 1;
    console.log(`    ✗ ${name}\n${error.message.replace(/^/gm, '        ')}`);
    return false;
  }
}
