import { describe, expect, test } from '@jest/globals';
import { StoreReplyError } from '../../lib/core/errors.js';
import { follow } from './loaders.js';
import { setUp } from './setting.js';

function stage() {
  const lines: string[] = [];
  const logger = {
    log: (line: string) => lines.push(`log ${line}`),
    warn: (line: string) => lines.push(`warn ${line}`),
    error: (line: string) => lines.push(`error ${line}`),
  };
  return { ...parts(setUp({ logger })), lines };
}

function parts(setting: ReturnType<typeof setUp>) {
  const { clock, cache, locks, store } = setting;
  return { setting, clock, cache, locks, store };
}

const BEGINS = "error Trouble with the cache's store, loaders answer meanwhile: 'read' failed: read was refused";

describe('the log', () => {
  test('has one line when trouble begins and one when it ends, with counts, whatever the number of calls', async () => {
    const { clock, cache, store, lines } = stage();
    store.isAway('rejects');
    for (let i = 0; i < 100; i++) {
      await cache.getOrLoad(`key${i}`, () => 'loaded', '60s');
      await cache.evict(`key${i}`).catch(() => {});
      await clock.advance(100);
    }
    expect(lines).toEqual([BEGINS]);
    store.works();
    for (let i = 0; i < 100; i++) {
      await cache.getOrLoad(`key${i}`, () => 'loaded', '60s');
      await clock.advance(100);
    }
    expect(lines).toEqual([
      BEGINS,
      expect.stringMatching(/^log .* works again: 1\d\d commands failed within \d{4,5} ms/),
    ]);
  });

  test('by a logger that throws is no trouble for who calls', async () => {
    const fails = () => {
      throw new Error('the logger has ended');
    };
    const { clock, cache, store } = parts(setUp({ logger: { log: fails, warn: fails, error: fails } }));
    store.isAway('rejects');
    expect(await cache.getOrLoad('key', () => 'loaded', '60s')).toBe('loaded');
    store.works();
    // The trouble is over, which is a line, too.
    await clock.advance(10_000);
    expect(await cache.get('key')).toBeUndefined();
    store.isAway('reply lost');
    const hanging = follow(cache.getOrLoad('key', () => 'loaded', '60s'));
    await clock.advance(10_000);
    expect(hanging).toMatchObject({ settled: true, value: 'loaded' });
  });

  test('a store that flickers is one trouble', async () => {
    const { clock, cache, store, lines } = stage();
    for (let i = 0; i < 20; i++) {
      store.fails('read', i % 2 === 0 ? 'rejects' : { repliesAfter: 0 });
      await follow(cache.get('key'));
      await clock.advance(500);
    }
    expect(lines).toEqual([BEGINS]);
  });

  test('a store that reads but can not write is one trouble, though seldom asked', async () => {
    const { clock, cache, store, lines } = stage();
    store.lead = () => Promise.reject(new StoreReplyError(new Error('OOM')));
    for (let i = 0; i < 20; i++) {
      await cache.getOrLoad('key', () => 'loaded', '60s');
      await clock.advance(5_000);
    }
    expect(lines).toEqual([expect.stringContaining("'lead' failed: OOM")]);
  });

  test('it is over, too, when what failed is no longer asked for', async () => {
    const { clock, cache, store, lines } = stage();
    await cache.set('key', 'stored', '1h');
    store.fails('lead', 'rejects');
    await cache.getOrLoad('other', () => 'loaded', '60s');
    for (let i = 0; i < 20; i++) {
      await cache.get('key');
      await clock.advance(5_000);
    }
    expect(lines.slice(1)).toEqual([expect.stringMatching(/^log .* works again: 1 command failed/)]);
  });

  test('the lock service has no lines of its own', async () => {
    const { clock, locks, store, lines } = stage();
    store.fails('lead', 'rejects');
    for (let i = 0; i < 10; i++) {
      await locks.acquire('lock', { lease: '5s' }).catch(() => {});
      await clock.advance(100);
    }
    expect(lines).toHaveLength(1);
  });

  test('closing is no trouble', async () => {
    const { setting, cache, lines } = stage();
    await setting.close();
    await cache.getOrLoad('key', () => 'loaded', '60s');
    await cache.evict('key').catch(() => {});
    expect(lines).toEqual([]);
  });
});
