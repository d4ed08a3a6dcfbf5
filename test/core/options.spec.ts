import { describe, expect, test } from '@jest/globals';
import { createStampede } from '../../lib/core/create.js';
import { InvalidOptionError } from '../../lib/core/errors.js';
import { DEFAULTS } from '../../lib/core/options.js';
import { resolveNamespace } from '../../lib/core/resolve-cache-options.js';
import { MemoryStore } from '../../lib/memory/memory-store.js';
import { setUp } from './setting.js';

const WRONG: Record<string, unknown[]> = {
  lease: [99, '1', Infinity, '30d', null],
  wait: [-1, Number.NaN, Infinity],
  maxLoad: [0, 'soon', Infinity],
  onWaitTimeout: ['stale', true, null],
  shareErrors: ['yes', 1],
  ttlJitter: [-0.1, 1.1, '0.1', Number.NaN],
  isolate: ['clone', true],
  codec: [{}, { encode() {} }, JSON, null],
  abortWhenUnused: ['no', 0],
};

describe('options', () => {
  for (const [option, values] of Object.entries(WRONG)) {
    test.each(values)(`${option}: %p is an error that names it, at boot and at the call`, async (value) => {
      expect(() => createStampede({ store: new MemoryStore() }, { defaults: { [option]: value } })).toThrow(
        InvalidOptionError,
      );
      const { cache, store } = setUp();
      const call = cache.getOrLoad('key', () => 1, { ttl: '60s', [option]: value });
      await expect(call).rejects.toMatchObject({ name: 'InvalidOptionError', option });
      expect(store.sent).toEqual([]);
    });
  }

  test.each([
    ['commandTimeout', 0],
    ['commandTimeout', 'never'],
    ['drainTimeout', -1],
    ['drainTimeout', Infinity],
  ])('%s: %p is an error at boot', (option, value) => {
    expect(() => createStampede({ store: new MemoryStore() }, { [option]: value })).toThrow(
      expect.objectContaining({ option }),
    );
  });

  test.each([
    ['loader', { loader: 'select 1' }],
    ['cacheIf', { cacheIf: true }],
    ['signal', { signal: new AbortController() }],
  ])('%s: an error at the call', async (option, { loader = () => 1, ...options }: Record<string, unknown>) => {
    const { cache } = setUp();
    const call = cache.getOrLoad('key', loader as never, { ttl: '60s', ...options } as never);
    await expect(call).rejects.toMatchObject({ name: 'InvalidOptionError', option });
  });

  test.each([
    ['lease', 99],
    ['wait', -1],
    ['renew', 'no'],
    ['signal', {}],
  ])('%s of a lock: an error at the call', async (option, value) => {
    const { locks, store } = setUp();
    await expect(locks.acquire('key', { [option]: value })).rejects.toMatchObject({ option });
    expect(store.sent).toEqual([]);
  });

  test('the message says what is wrong and what would be right', () => {
    const wrong = () => createStampede({ store: new MemoryStore() }, { defaults: { wait: '1500' as never } });
    expect(wrong).toThrow(
      "wait must be a duration: milliseconds as a number (60000), or a text with a unit (ms, s, m, h, d), such as '60s'; it is '1500'",
    );
  });

  test('a call overrides the cache, and the cache overrides the defaults', () => {
    const { cache } = setUp({ defaults: { lease: '7s', wait: '20s' } });
    const { lease, wait, maxLoad } = cache.resolve({ ttl: 1, wait: '25s' });
    expect([lease, wait, maxLoad]).toEqual([7_000, 25_000, DEFAULTS.maxLoad]);
    expect(cache.resolve({ ttl: 1, wait: undefined }).wait).toBe(20_000);
  });

  test('a namespace has no braces and no white space', () => {
    expect(resolveNamespace()).toBe('stampede');
    expect(resolveNamespace('shop.eu')).toBe('shop.eu');
    for (const wrong of ['', 'a b', 'a{b', 'a}', 7, null])
      expect(() => resolveNamespace(wrong)).toThrow(/^namespace must/);
  });
});
