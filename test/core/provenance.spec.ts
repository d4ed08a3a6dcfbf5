/** What a call is told of where its value comes from, and how a call asks for a value that is not the stored one. */
import { describe, expect, test } from '@jest/globals';
import type { Loader } from '../../lib/core/caller.js';
import type { LoadOptions } from '../../lib/core/options.js';
import type { Provenance } from '../../lib/core/provenance.js';
import type { StampedeCache } from '../../lib/core/stampede-cache.js';
import { follow, slowLoader } from './loaders.js';
import { setUp } from './setting.js';

/** A call, and what it was told. */
function call<T>(
  cache: StampedeCache,
  loader: Loader<T>,
  options: LoadOptions<T>,
  reload = false,
): { readonly told: Provenance[]; readonly value: Promise<T> } {
  const told: Provenance[] = [];
  const resolved = { ...cache.resolve(options), reload, told: (provenance: Provenance) => void told.push(provenance) };
  return { told, value: cache.getOrLoadResolved('key', loader, resolved) };
}

describe('told', () => {
  test('who loads, who waits here and there, and who finds it later', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const [first, second] = processes;
    if (!first || !second) throw new Error('there are two');
    const loader = slowLoader(clock, 100, (run) => run);
    const calls = [first, first, second].map(({ cache }) => call(cache, loader, { ttl: '10s' }));
    for (const { value } of calls) follow(value);
    await clock.advance(100);
    expect(calls.map(({ told }) => told)).toEqual([
      [{ is: 'load', stored: 10_000 }],
      [{ is: 'load', stored: 10_000 }],
      [{ is: 'hit', left: 10_000 }],
    ]);
    await clock.advance(4_000);
    const later = call(second.cache, loader, { ttl: '10s' });
    follow(later.value);
    await clock.advance(0);
    expect(later.told).toEqual([{ is: 'hit', left: 6_000 }]);
    expect(loader.runs).toBe(1);
  });

  test('that it was not stored', async () => {
    const { clock, cache } = setUp();
    for (const options of [{ ttl: 0 }, { ttl: '1s', cacheIf: () => false }] as const) {
      const { told, value } = call(cache, () => 1, options);
      follow(value);
      await clock.advance(0);
      expect(told).toEqual([{ is: 'load', stored: undefined }]);
    }
  });

  test('how long it has not been fresh, and why it got that', async () => {
    const { clock, cache } = setUp();
    const options = { ttl: '1s', staleWhileRevalidate: '5s', staleIfError: '20s' } as const;
    follow(call(cache, () => 'old', options).value);
    await clock.advance(3_000);
    const failing = () => Promise.reject(new Error('broken'));
    const soon = call(cache, failing, options);
    expect(follow(soon.value));
    await clock.advance(0);
    await clock.advance(5_000);
    const late = call(cache, failing, options);
    follow(late.value);
    await clock.advance(0);
    expect([soon.told, late.told]).toEqual([
      [{ is: 'stale', reason: 'while-revalidate', since: 2_000 }],
      [{ is: 'stale', reason: 'if-error', since: 7_000 }],
    ]);
  });
});

describe('reload', () => {
  test('loads anew, once for all who ask for it meanwhile; others are not kept waiting', async () => {
    const { clock, processes } = setUp({ processes: 2 });
    const loader = slowLoader(clock, 100, (run) => run);
    const [cache] = processes.map((process) => process.cache);
    if (!cache) throw new Error('there is one');
    const first = follow(call(cache, loader, { ttl: '10s' }).value);
    await clock.advance(1_000);
    const reloads = processes.flatMap((process) =>
      [1, 2, 3].map(() => follow(call(process.cache, loader, { ttl: '10s' }, true).value)),
    );
    await clock.advance(100);
    expect(loader.runs).toBe(2);
    expect([first.value, ...reloads.map(({ value }) => value)]).toEqual([1, 2, 2, 2, 2, 2, 2]);
    const after = follow(call(cache, loader, { ttl: '10s' }).value);
    await clock.advance(0);
    expect(after.value).toBe(2);
  });

  test('gets no stale value either, unless the load fails', async () => {
    const { clock, cache } = setUp();
    const options = { ttl: '1s', staleWhileRevalidate: '10s', staleIfError: '10s', errorHoldOff: 0 } as const;
    follow(call(cache, () => 'old', options).value);
    await clock.advance(2_000);
    const fails = call(cache, () => Promise.reject<string>(new Error('broken')), options, true);
    const failed = follow(fails.value);
    await clock.advance(0);
    expect([failed.value, fails.told]).toEqual(['old', [{ is: 'stale', reason: 'if-error', since: 1_000 }]]);
    const reloaded = follow(call(cache, () => 'new', options, true).value);
    await clock.advance(0);
    expect(reloaded.value).toBe('new');
  });
});
