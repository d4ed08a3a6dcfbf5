// What `npm test` runs: the tests against real Redis servers, then the type tests, and their totals as the last line.
// Arguments are jest's (a path, -t …); with any, the type tests are left out. SKIP_BUILD=1 uses dist/lib as it is.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { findRedis, missingRedis } from './find-redis.mjs';
import { ensureDependencies, root } from './setup.mjs';
import { whenParentEnds } from './when-parent-ends.mjs';

const jestArgs = process.argv.slice(2);
const reports = mkdtempSync(join(tmpdir(), 'test-reports-'));
process.on('exit', () => rmSync(reports, { recursive: true, force: true }));
process.on('SIGINT', () => process.exit(130));
process.on('SIGTERM', () => process.exit(143));

try {
  const counts = await run();
  const total = (name) => counts.reduce((sum, count) => sum + count[name], 0);
  // Again, since a log is read from its end, and may be all that is left of one.
  for (const failure of counts.flatMap(({ failures = [] }) => failures)) console.log(`FAILED ${failure}`);
  const [passed, failed, skipped] = ['passed', 'failed', 'skipped'].map(total);
  if (skipped > 0) console.log(`${skipped} skipped or to do`);
  if (passed + failed === 0) console.log('No test was executed.');
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}

async function run() {
  ensureDependencies();
  const redis = findRedis({ allowInstall: true });
  if (!redis) throw new Error(missingRedis());
  console.log(`Redis ${redis.version}: ${redis.binary}`);
  buildLibrary();
  const env = { ...process.env, REDIS_SERVER: redis.binary, ...(redis.sentinel && { REDIS_SENTINEL: redis.sentinel }) };
  const jest = await runJest(env);
  return jestArgs.length > 0 ? [jest] : [jest, runTypeTests(), ...matrixCounts()];
}

/** What `npm run test:matrix` counted before, in .ci/run. */
function matrixCounts() {
  const { MATRIX_COUNTS: file } = process.env;
  if (!file) return [];
  return [existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { passed: 0, failed: 1, skipped: 0 }];
}

/** Tests of several processes start Node on dist/lib, which knows no TypeScript. */
function buildLibrary() {
  if (process.env.SKIP_BUILD === '1') return;
  const nest = join(root, 'node_modules/@nestjs/cli/bin/nest.js');
  const { status } = spawnSync(process.execPath, [nest, 'build', 'nestjs-stampede-cache'], {
    cwd: root,
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('The library does not build; the tests were not run.');
}

async function runJest(env) {
  const report = join(reports, 'jest.json');
  const node = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
  const args = [...node, join(root, 'node_modules/jest/bin/jest.js'), '--json', `--outputFile=${report}`, ...jestArgs];
  const jest = spawn(process.execPath, args, { cwd: root, stdio: 'inherit', env });
  const callOff = whenParentEnds('kill "$1"', jest.pid);
  const exited = once(jest, 'exit');
  const hung = endIfHung(jest, report);
  const [code] = await exited;
  callOff();
  if (!existsSync(report)) return { passed: 0, failed: code === 0 ? 0 : 1, skipped: 0 };

  const result = JSON.parse(readFileSync(report, 'utf8'));
  const failed = result.numFailedTests + result.numRuntimeErrorTestSuites + ((await hung) ? 1 : 0);
  return {
    passed: result.numPassedTests,
    // Some failures are in no count, such as a coverage threshold or an error after the last test.
    failed: failed === 0 && code !== 0 && result.numTotalTests > 0 ? 1 : failed,
    skipped: result.numPendingTests + result.numTodoTests,
    failures: result.testResults.flatMap(failuresOf),
  };
}

/** Each failed test of a file and why, in a few lines. */
function failuresOf({ name: path, assertionResults, message }) {
  const file = relative(root, path);
  const failed = assertionResults.filter(({ status }) => status === 'failed');
  // A file that can't be run has no tests.
  if (failed.length === 0) return message && assertionResults.length === 0 ? [`${file}: ${firstLines(message)}`] : [];
  return failed.map(
    ({ fullName, failureMessages }) => `${file}: ${fullName}\n${firstLines(failureMessages.join('\n'))}`,
  );
}

function firstLines(text) {
  return stripVTControlCharacters(text).split('\n').filter(Boolean).slice(0, 12).join('\n');
}

/** Something left open, such as a socket, keeps jest alive after its report for ever. It is a fault: ended, and told. */
async function endIfHung(jest, report) {
  if (jestArgs.some((argument) => argument.startsWith('--watch'))) return false;
  const running = () => jest.exitCode === null && jest.signalCode === null;
  while (running() && !existsSync(report)) await sleep(500);
  for (let waited = 0; running() && waited < 10_000; waited += 100) await sleep(100);
  if (!running()) return false;
  console.error('Jest finished but did not exit within 10 seconds: a test left a socket, a timer or a process open.');
  jest.kill('SIGKILL');
  return true;
}

function runTypeTests() {
  const report = join(reports, 'types.json');
  const tstyche = join(root, 'node_modules/tstyche/build/bin.js');
  const args = [tstyche, '--reporters', 'list,summary,./scripts/count-type-tests.mjs'];
  const env = { ...process.env, TYPE_TEST_COUNTS: report };
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit', env });
  if (!existsSync(report)) return { passed: 0, failed: 1, skipped: 0 };
  const counts = JSON.parse(readFileSync(report, 'utf8'));
  return status !== 0 && counts.failed === 0 ? { ...counts, failed: 1 } : counts;
}
