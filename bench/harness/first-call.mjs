// A process that starts, opens a system, and answers one call by a value that is stored: what a new instance of an
// application waits for. Prints milliseconds and bytes.
import { open } from '../systems.mjs';

const [name, port] = process.argv.slice(2);
const start = performance.now();
const system = await open(name, { port: Number(port), ttl: 600_000, lease: 10_000, wait: 5_000 });
const opened = performance.now();
const value = await system.getOrLoad('start', async () => ({ key: 'start' }));
const answered = performance.now();
if (value.key !== 'start') throw new Error('a wrong value');
const { rss } = process.memoryUsage();
console.log(JSON.stringify({ boot: opened - start, firstCall: answered - opened, total: answered, rss }));
await system.close();
process.exit();
