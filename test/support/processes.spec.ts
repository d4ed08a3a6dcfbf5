import { afterEach, expect, test } from '@jest/globals';
import { eventually } from './eventually.js';
import { startProcesses, type WorkerProcess } from './processes.js';

interface SampleWorker {
  echo<T extends unknown[]>(...values: T): Promise<T>;
  fail(): Promise<void>;
  leakRejection(): Promise<void>;
  leakRejectionLater(): Promise<void>;
  never(): Promise<void>;
  unclonable(): Promise<void>;
}

let workers: WorkerProcess<SampleWorker>[] = [];

async function start(count = 1): Promise<WorkerProcess<SampleWorker>> {
  workers = await startProcesses<SampleWorker>(new URL('./sample.worker.mjs', import.meta.url), count);
  return workers[0]!;
}

afterEach(() => Promise.all(workers.map((worker) => worker.kill())));

test('answers calls, each in a process of its own', async () => {
  await start(3);
  const values = [new Date(0), 1n, undefined, Number.NaN] as const;
  expect(await Promise.all(workers.map((worker) => worker.call('echo', ...values)))).toEqual([values, values, values]);
  expect(new Set(workers.map(({ pid }) => pid)).size).toBe(3);
});

test('throws the error that the worker threw', async () => {
  const worker = await start();
  await expect(worker.call('fail')).rejects.toMatchObject({
    name: 'RangeError',
    message: 'too far',
    code: 'E_FAR',
    status: 404,
    cause: { message: 'the cause' },
  });
  await expect(worker.call('unclonable')).rejects.toThrow('could not be cloned');
});

test('an unhandled rejection fails the call under way', async () => {
  const worker = await start();
  await expect(worker.call('leakRejection')).rejects.toThrow('nobody handles this');
});

test('an unhandled rejection that no call told of fails stop()', async () => {
  const worker = await start();
  await worker.call('leakRejectionLater');
  await new Promise((resolve) => setTimeout(resolve, 100));
  await expect(worker.stop()).rejects.toThrow('nobody handles this');
});

test('kill fails the calls under way', async () => {
  const worker = await start();
  const call = worker.call('never');
  const failed = expect(call).rejects.toThrow('SIGKILL');
  expect(await worker.kill('SIGKILL')).toEqual({ code: null, signal: 'SIGKILL' });
  await failed;
  await expect(worker.call('echo')).rejects.toThrow('has ended');
});

test('a frozen process answers when it is thawed', async () => {
  const worker = await start();
  worker.freeze();
  let answered = false;
  const call = worker.call('echo', 1).finally(() => {
    answered = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(answered).toBe(false);
  worker.thaw();
  expect(await call).toEqual([1]);
});

test('stop lets the process end', async () => {
  const worker = await start();
  expect(await worker.stop()).toEqual({ code: 0, signal: null });
  await eventually(() => !isAlive(worker.pid));
});

test('a script that ends before it serves fails the start', async () => {
  const script = new URL('./sample.worker.mjs', import.meta.url);
  await expect(startProcesses(script, 1, { env: { SAMPLE_EXIT: '3' } })).rejects.toThrow('ended (3)');
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
