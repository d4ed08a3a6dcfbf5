import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { withProcesses } from '../harness/processes.mjs';
import { startSlowLink } from '../harness/slow-link.mjs';
import { median } from '../harness/statistics.mjs';

/** Milliseconds that the link adds, each way. */
const ONE_WAY = 10;
/** Longer than anything that a call still does behind its caller's back takes. */
const SETTLED = 150;
const TIMES = 5;

const HOUSEKEEPING = new Set(
  'auth client config flushall hello hincrby info monitor ping script select subscribe unsubscribe'.split(' '),
);

export const trace = {
  name: 'trace',
  title: 'What a hit and a miss send',
  about:
    'Commands as MONITOR shows them, those inside scripts in a column of their own; round trips on the way of the caller, ' +
    'from its time over a link that adds 10 ms each way.',
  full: {},
  rounds: 1,
  async measure({ redis, system }) {
    await redis.empty();
    const link = await startSlowLink(redis.port, ONE_WAY);
    const seen = [];
    const monitor = await watchCommands(redis.port, (command) => seen.push(command));
    try {
      const roundTrip = await timeOfRoundTrip(link.port);
      return await withProcesses(1, { port: link.port }, system, {}, async ([process]) => {
        // Teaches the server the scripts.
        for (let i = 0; i < 3; i++) await process.call('ask', { key: `warm-up ${i}` });
        const ask = async (key) => {
          await sleep(SETTLED);
          seen.length = 0;
          const { askedAt, answeredAt, error } = await process.call('ask', { key });
          if (error) throw new Error(error);
          await sleep(SETTLED);
          return { time: answeredAt - askedAt, commands: [...seen] };
        };
        const keys = Array.from({ length: TIMES }, (_, i) => `traced ${i}`);
        const misses = await inOrder(keys, ask);
        const hits = await inOrder(keys, ask);
        const trips = (calls) => Math.round((median(calls.map(({ time }) => time)) / roundTrip) * 10) / 10;
        return {
          hitTrips: trips(hits),
          hit: names(hits.at(-1).commands, false),
          missTrips: trips(misses),
          miss: names(misses.at(-1).commands, false),
          inScripts: names(misses.at(-1).commands, true),
        };
      });
    } finally {
      monitor.destroy();
      await link.stop();
    }
  },
  columns: [
    ['hitTrips', 'round trips of a hit', 1],
    ['hit', 'a hit sends'],
    ['missTrips', 'of a miss', 1],
    ['miss', 'a miss sends'],
    ['inScripts', 'inside its scripts'],
  ],
};

async function inOrder(keys, ask) {
  const answers = [];
  for (const key of keys) answers.push(await ask(key));
  return answers;
}

function names(commands, inScript) {
  const chosen = commands.filter((command) => command.inScript === inScript).map(({ name }) => name);
  return chosen.join(' ') || '–';
}

async function timeOfRoundTrip(port) {
  const client = new Redis({ host: '127.0.0.1', port });
  const times = [];
  await client.ping();
  for (let i = 0; i < TIMES; i++) {
    const start = performance.now();
    await client.ping();
    times.push(performance.now() - start);
  }
  client.disconnect();
  return median(times);
}

/** A connection that only listens: MONITOR has a line a command, with `lua` in place of an address inside scripts. */
async function watchCommands(port, note) {
  const socket = connect(port, '127.0.0.1');
  const listening = new Promise((resolve, reject) => {
    let rest = '';
    socket.setEncoding('latin1');
    socket.on('error', reject);
    socket.on('data', (chunk) => {
      const lines = (rest + chunk).split('\r\n');
      rest = lines.pop();
      for (const line of lines) {
        if (line === '+OK') resolve();
        const [, source, command] = /^\+[\d.]+ \[\d+ ([^\]]+)\] "([^"]+)"/.exec(line) ?? [];
        const name = command?.toLowerCase();
        if (name && !HOUSEKEEPING.has(name)) note({ name, inScript: source === 'lua' });
      }
    });
  });
  socket.write('MONITOR\r\n');
  await listening;
  return socket;
}
