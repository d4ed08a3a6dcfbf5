import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { withProcesses } from '../harness/processes.mjs';

const FIRST_CALL = fileURLToPath(new URL('../harness/first-call.mjs', import.meta.url));
const run = promisify(execFile);

export const start = {
  name: 'start',
  title: 'The start of a process',
  about:
    'Import, connect and answer one hit, in a new process. Ours includes NestJS and its application context; ours-ioredis-6 ' +
    'is the usual case, while the other rows of ours load a second ioredis, that of the peers.',
  full: { times: 5 },
  rounds: 3,
  suits: ({ inMemory }) => !inMemory,
  async measure({ redis, system, numbers }) {
    await redis.empty();
    await withProcesses(1, redis, system, {}, ([process]) => process.call('ask', { key: 'start' }));
    const samples = [];
    for (let i = 0; i < numbers.times; i++) {
      const { stdout } = await run(process.execPath, [FIRST_CALL, system.name, redis.port], { timeout: 30_000 });
      const { rss, ...times } = JSON.parse(stdout);
      samples.push({ ...times, rss: rss / 2 ** 20 });
    }
    return samples;
  },
  columns: [
    ['boot', 'import and connect, ms', 0],
    ['firstCall', 'first call, ms', 1],
    ['total', 'from the start of Node, ms', 0],
    ['rss', 'RSS, MB', 0],
  ],
  chart: { field: 'total', title: 'ms from the start of Node to the first answer', less: true },
};
