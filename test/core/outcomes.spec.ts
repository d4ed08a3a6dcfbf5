import { describe, expect, test } from '@jest/globals';
import { LoadTimeoutError, RemoteLoadError } from '../../lib/core/errors.js';
import { type ErrorCodec, remoteErrorCodec } from '../../lib/core/outcome.js';
import { crowd, expectAll, follow, slowLoader } from './loaders.js';
import { setUp } from './setting.js';

describe('outcomes travel to the followers of a load that stored nothing', () => {
  test.each([
    ['a value that cacheIf refuses', { ttl: '60s', cacheIf: () => false }],
    ['a value of ttl 0', { ttl: 0 }],
    ['a value of a ttl function that says 0', { ttl: () => 0 }],
    ['a value that lives too short to be found', { ttl: 1 }],
  ] as const)('%s, by wake-up', async (_what, options) => {
    const { clock, processes, sent } = setUp({ processes: 5 });
    const loader = slowLoader(clock, 100, (run) => ({ run }));
    const calls = processes.flatMap(({ cache }) =>
      crowd(20, () => cache.getOrLoad('key', loader, options)).map(follow),
    );
    await clock.advance(100);
    expectAll(calls, { run: 1 });
    expect(loader.runs).toBe(1);
    expect(sent('end')).toBe(1);
  });

  test.each([
    ['deaf', 0],
    ['deaf', 10],
    ['losesWakeUps', 0],
    ['losesWakeUps', 10],
  ] as const)('to those that poll, too (%s, ttl %p)', async (trouble, ttl) => {
    const { clock, processes } = setUp({ processes: 5 });
    for (const { store } of processes) store[trouble] = true;
    const loader = slowLoader(clock, 110, (run) => run);
    const calls = processes.flatMap(({ cache }) => crowd(20, () => cache.getOrLoad('key', loader, ttl)).map(follow));
    await clock.advance(600);
    expectAll(calls, 1);
    expect(loader.runs).toBe(1);
  });

  test('only to those who waited for that very load: a call after its end loads anew', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const loader = slowLoader(clock, 100, (run) => run);
    const calls = processes.map(({ cache }) => follow(cache.getOrLoad('key', loader, 0)));
    await clock.advance(100);
    expectAll(calls, 1);
    const next = processes.map(({ cache }) => follow(cache.getOrLoad('key', loader, 0)));
    await clock.advance(100);
    expectAll(next, 2);
  });

  test('an error arrives with name, message and code; in its own process it is the very error', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const error = Object.assign(new RangeError('too far'), { code: 'E_FAR' });
    const calls = processes.map(({ cache }) =>
      follow(cache.getOrLoad('key', () => clock.sleep(10).then(() => Promise.reject(error)), '60s')),
    );
    await clock.advance(10);
    expect(calls[0]?.error).toBe(error);
    expect(calls[1]?.error).toBeInstanceOf(RemoteLoadError);
    expect(calls[1]?.error).toMatchObject({ name: 'RangeError', message: 'too far', code: 'E_FAR' });
  });

  test.each([
    ['a text', 'just a text', { name: 'Error', message: 'just a text', code: 'REMOTE_LOAD_ERROR' }],
    ['nothing', undefined, { name: 'Error', message: 'undefined', code: 'REMOTE_LOAD_ERROR' }],
    ['a number as code', Object.assign(new Error('m'), { code: 7 }), { message: 'm', code: 'REMOTE_LOAD_ERROR' }],
  ])('%s that is thrown arrives as an error', (_what, thrown, expected) => {
    expect(remoteErrorCodec.decode(remoteErrorCodec.encode(thrown) ?? '')).toMatchObject(expected);
  });

  test('LoadTimeoutError arrives as one', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const loader = slowLoader(clock, 2_000, (run) => run);
    const calls = processes.map(({ cache }) => follow(cache.getOrLoad('key', loader, { ttl: '60s', maxLoad: '1s' })));
    await clock.advance(1_000);
    for (const { error } of calls) {
      expect(error).toBeInstanceOf(LoadTimeoutError);
      expect(error).toMatchObject({ code: 'LOAD_TIMEOUT', key: 'key', maxLoad: 1_000 });
    }
    expect(loader.runs).toBe(1);
    await clock.advance(1_000);
  });

  test('an error codec of the user decides how errors arrive', async () => {
    const errorCodec: ErrorCodec = {
      encode: (error) => (error instanceof TypeError ? error.message : undefined),
      decode: (text) => new TypeError(text),
    };
    const { clock, processes } = setUp({ processes: 2, errorCodec });
    const failWith = (error: Error) =>
      processes.map(({ cache }) =>
        follow(cache.getOrLoad(error.name, () => clock.sleep(10).then(() => Promise.reject(error)), '60s')),
      );
    const types = failWith(new TypeError('mine'));
    const ranges = failWith(new RangeError('not mine'));
    await clock.advance(10);
    expect(types[1]?.error).toEqual(new TypeError('mine'));
    // What can't travel is loaded by the followers themselves.
    expect(ranges[1]?.settled).toBe(false);
    await clock.advance(10);
    expect(ranges[1]?.error).toBe(ranges[0]?.error);
  });

  test('shareErrors: false: each process loads for itself, one at a time', async () => {
    const { clock, processes } = setUp({ processes: 4, defaults: { shareErrors: false } });
    const loader = slowLoader(clock, 100, (run) => Promise.reject(new Error(`failure ${run}`)));
    const calls = processes.map(({ cache }) => crowd(5, () => cache.getOrLoad('key', loader, '60s')).map(follow));
    await clock.advance(500);
    expect([loader.runs, loader.most]).toEqual([4, 1]);
    const messages = calls.map((crowded) => new Set(crowded.map(({ error }) => (error as Error).message)));
    expect(messages.map((of) => of.size)).toEqual([1, 1, 1, 1]);
    expect(new Set(messages.flatMap((of) => [...of])).size).toBe(4);
  });

  test('shareErrors: false of a follower alone: it does not take the error that others take', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const failing = () => clock.sleep(100).then(() => Promise.reject(new Error('down')));
    const first = follow(processes[0]!.cache.getOrLoad('key', failing, '60s'));
    const takes = follow(processes[1]!.cache.getOrLoad('key', failing, '60s'));
    const own = follow(processes[1]!.cache.getOrLoad('key', () => 'own', { ttl: '60s', shareErrors: false }));
    await clock.advance(100);
    expect([first, takes].map(({ error }) => (error as Error)?.message)).toEqual(['down', 'down']);
    expect(own.value).toBe('own');
  });

  test('an outcome that can not be read is no answer: the follower leads', async () => {
    const errorCodec: ErrorCodec = { encode: () => 'written', decode: () => JSON.parse('{') };
    const { clock, processes } = setUp({ processes: 2, errorCodec });
    void processes[0]!.cache
      .getOrLoad('key', () => clock.sleep(10).then(() => Promise.reject(new Error('down'))), '60s')
      .catch(() => {});
    await clock.advance(1);
    const call = follow(processes[1]!.cache.getOrLoad('key', () => 'own', '60s'));
    await clock.advance(10);
    expect(call.value).toBe('own');
  });

  test('failures are never stored as values', async () => {
    const { cache } = setUp();
    await expect(cache.getOrLoad('key', () => Promise.reject(new Error('down')), '60s')).rejects.toThrow('down');
    expect(await cache.has('key')).toBe(false);
    expect(await cache.getOrLoad('key', () => 'up', '60s')).toBe('up');
  });
});
