import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { root } from '../setup.mjs';
import { whenParentEnds } from '../when-parent-ends.mjs';

const LINES_KEPT = 20;
const PATIENCE = 10_000;

/**
 * Starts a Node script as a process that ends with this one, in whatever way this one ends.
 *
 * `crashed` rejects when it ends without having been told to, with the errors it printed unless those were shown.
 * `stop()` asks it to end (SIGTERM), waits until it has, and after ten seconds kills it.
 *
 * @param {{ name: string, script: string, args?: string[], env?: Record<string, string>, show?: boolean }} what
 *   `show`: passes on what it prints, each line with its name before it
 * @returns {{ pid: number, crashed: Promise<never>, stop(): Promise<void> }}
 */
export function startChild({ name, script, args = [], env = {}, show = false }) {
  const child = spawn(process.execPath, [script, ...args], {
    cwd: root,
    env: { ...process.env, ...env, NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
    // Ctrl-C reaches a whole process group; out of it, so that this process decides who stops when.
    detached: process.platform !== 'win32',
  });
  const callOff = whenParentEnds('kill -9 "$1"', child.pid ?? '');
  const lines = [];
  let stopping = false;
  if (show) {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => stopping || console.log(`[${name}] ${line}`));
    }
  } else {
    child.stdout.resume();
    createInterface({ input: child.stderr }).on('line', (line) => lines.push(line) > LINES_KEPT && lines.shift());
  }

  // 'close', not 'exit': by then all it printed has been read.
  const ended = new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(signal ?? `exit code ${code}`));
  });
  const crashed = ended.then((how) => {
    callOff();
    if (stopping) return new Promise(() => {});
    throw new Error([`The process "${name}" ended by itself (${how}).`, ...lines].join('\n  '));
  });
  crashed.catch(() => {});

  return {
    pid: child.pid,
    crashed,
    async stop() {
      stopping = true;
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), PATIENCE);
      await ended;
      clearTimeout(timer);
    },
  };
}
