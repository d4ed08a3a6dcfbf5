import { spawn } from 'node:child_process';

/**
 * Runs a shell script (with `$1`, `$2`, … = `args`) when this process ends in whatever way, `kill -9` included: exit
 * handlers don't run then, and not inside jest either. A waiting shell holds the other end of a pipe, which the system
 * closes with us. Returns a function that calls it off. Nothing happens on Windows, which has no such shell.
 */
export function whenParentEnds(script, ...args) {
  if (process.platform === 'win32') return () => {};
  // Detached, so that Ctrl-C, which reaches the whole process group, doesn't end the shell before it did its work.
  const shell = spawn('sh', ['-c', `read -r _; ${script}`, 'sh', ...args.map(String)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  shell.on('error', () => {});
  shell.stdin.on('error', () => {});
  shell.unref();
  shell.stdin.unref();
  return () => {
    // In this order: a closed pipe would run the script.
    shell.kill('SIGKILL');
    shell.stdin.destroy();
  };
}
