import { describe, expect, test } from '@jest/globals';
import type { Duration } from '../../lib/core/durations.js';
import { StoreReplyError } from '../../lib/core/errors.js';
import { follow } from './loaders.js';
import { type Process, type Setting, setUp } from './setting.js';

/**
 * Every test is the same story: something old is on its way to a process, another process evicts, and only then, when the
 * eviction has resolved, a late caller comes. It must never get what is old; who came earlier may.
 */
describe('the proof rule: a reply answers only those who had joined before its command was sent', () => {
  test('a hit that is read, and evicted before its reply comes', async () => {
    const { clock, writer, reader, call } = stage();
    await writer.cache.set('key', 'old', '60s');
    reader.store.fails('read', { repliesAfter: 100 });
    const early = call('unused');
    await clock.advance(10);
    await writer.cache.evict('key');
    const late = call('new');
    await clock.advance(300);
    expect([early.value, late.value]).toEqual(['old', 'new']);
  });

  test('a hit that a follower reads once it is woken', async () => {
    const { clock, writer, reader, call, load } = stage();
    void writer.cache.getOrLoad('key', load('old', 100), '60s');
    await clock.advance(10);
    const early = call('unused');
    await clock.advance(10);
    reader.store.fails('read', { repliesAfter: 50 });
    await clock.advance(100);
    // The follower was woken at 100 and has read; the reply is on its way.
    await writer.cache.evict('key');
    const late = call('new');
    await clock.advance(300);
    expect([early.value, late.value]).toEqual(['old', 'new']);
  });

  test('a hit that the lead command finds', async () => {
    const { clock, writer, reader, call } = stage();
    reader.store.fails('read', { repliesAfter: 20 });
    reader.store.fails('lead', { repliesAfter: 50 });
    const early = call('unused');
    await clock.advance(10);
    await writer.cache.set('key', 'old', '60s');
    await clock.advance(20);
    await writer.cache.evict('key');
    const late = call('new');
    await clock.advance(300);
    expect([early.value, late.value]).toEqual(['old', 'new']);
  });

  test('an outcome', async () => {
    const { clock, writer, reader, call, load } = stage();
    void writer.cache.getOrLoad('key', load('old', 100), 0);
    await clock.advance(10);
    const early = call('unused');
    await clock.advance(10);
    reader.store.fails('lead', { repliesAfter: 50 });
    await clock.advance(100);
    await writer.cache.evict('key');
    const late = call('new');
    await clock.advance(300);
    expect([early.value, late.value]).toEqual(['old', 'new']);
  });

  test('an end that found its token, and was evicted before its reply came', async () => {
    const { clock, writer, reader, call } = stage();
    const early = call('old', 100);
    await clock.advance(10);
    const joined = call('unused');
    await clock.advance(40);
    reader.store.fails('end', { repliesAfter: 100 });
    await clock.advance(60);
    await writer.cache.evict('key');
    const late = call('new');
    await clock.advance(300);
    expect([early.value, joined.value, late.value]).toEqual(['old', 'old', 'new']);
  });

  test('an end that is refused: only those get the value who had joined before the lead', async () => {
    const { clock, writer, reader, call, load } = stage();
    reader.store.losesWakeUps = true;
    reader.store.fails('lead', { repliesAfter: 20 });
    const early = call('old', 100);
    await clock.advance(10);
    const onTheWay = call('new', 100);
    await clock.advance(50);
    reader.store.works();
    await writer.cache.evict('key');
    const late = call('unused', 100);
    await clock.advance(60);
    expect(early.value).toBe('old');
    // The others lead anew at once, together.
    expect([onTheWay.settled, late.settled]).toEqual([false, false]);
    await clock.advance(100);
    expect([onTheWay.value, late.value]).toEqual(['new', 'new']);
    expect(await reader.cache.getOrLoad('key', load('unused'), '60s')).toBe('new');
    expect(reader.store.count('lead')).toBe(2);
  });

  test('an end that is refused: those get the value who had joined before a renewal that was confirmed', async () => {
    const { clock, writer, reader, call } = stage();
    reader.store.losesWakeUps = true;
    const early = call('old', 3_000);
    await clock.advance(1_000);
    const beforeRenewal = call('unused');
    await clock.advance(650);
    // Renewed at 1,667, and the reply comes at 1,717.
    reader.store.fails('renew', { repliesAfter: 50 });
    await clock.advance(30);
    await writer.cache.evict('key');
    const afterRenewal = call('new');
    await clock.advance(1_400);
    expect([early.value, beforeRenewal.value, afterRenewal.value]).toEqual(['old', 'old', 'new']);
  });

  test('an end that is refused: a renewal without a reply proves nothing', async () => {
    const { clock, writer, reader, call } = stage();
    reader.store.losesWakeUps = true;
    reader.store.fails('renew', 'request lost');
    const early = call('old', 2_000);
    await clock.advance(1_000);
    await writer.cache.evict('key');
    const late = call('new');
    await clock.advance(1_100);
    expect([early.value, late.value]).toEqual(['old', 'new']);
  });

  test('an eviction that the leader hears of: those without proof lead anew at once, while the old load goes on', async () => {
    const { clock, writer, call, loads } = stage();
    const early = call('old', 1_000);
    await clock.advance(10);
    const joined = call('new', 100);
    await clock.advance(10);
    await writer.cache.evict('key');
    const late = call('unused');
    await clock.advance(100);
    expect(early.settled).toBe(false);
    expect([joined.value, late.value]).toEqual(['new', 'new']);
    await clock.advance(900);
    expect(early.value).toBe('old');
    expect(loads()).toEqual(['old', 'new']);
    expect(await writer.cache.get('key')).toBe('new');
  });

  test('an eviction that the leader is told of before it is told that it leads', async () => {
    const { clock, writer, reader, call, load } = stage();
    reader.store.fails('lead', { repliesAfter: 50 });
    const early = call('old', 100);
    await clock.advance(10);
    await writer.cache.evict('key');
    await clock.advance(50);
    reader.store.works();
    // It loads by now, and knows already that its lease has ended: a call from here on leads at once.
    const late = call('new', 10);
    await clock.advance(20);
    expect(late.value).toBe('new');
    await clock.advance(100);
    expect(early.value).toBe('old');
    expect(await writer.cache.getOrLoad('key', load('unused'), '60s')).toBe('new');
  });

  test.each(['refuses the lock', 'is too slow for a lease'])(
    'a load without a lock, because the store %s, and an eviction that reaches it',
    async (why) => {
      const { clock, reader, writer, call } = stage({ lease: 500 });
      if (why === 'refuses the lock') reader.store.lead = () => Promise.reject(new StoreReplyError(new Error('OOM')));
      else reader.store.fails('lead', { repliesAfter: 400 });
      const early = call('old', 100);
      await clock.advance(why === 'refuses the lock' ? 50 : 850);
      await writer.cache.evict('key');
      const late = call('new');
      await clock.advance(50);
      expect(early.value).toBe('old');
      await clock.advance(1_000);
      expect(late.value).toBe('new');
    },
  );

  test('a load without a lock, while the store is away, and an eviction in the same process', async () => {
    const { clock, reader, call } = stage();
    reader.store.fails('lead', 'rejects');
    const early = call('old', 100);
    await clock.advance(10);
    reader.store.works();
    await reader.cache.evict('key');
    const late = call('new');
    await clock.advance(100);
    expect([early.value, late.value]).toEqual(['old', 'new']);
  });
});

/** Two processes on one key: one that loads and is watched, and one that writes. */
function stage({ lease = '5s' as Duration } = {}) {
  const setting = setUp({ processes: 2 });
  const [reader, writer]: [Process, Process] = [setting.process(0), setting.process(1)];
  const { clock } = setting;
  const made: string[] = [];
  const load = (value: string, time = 0) => loaderOf(setting, made, value, time);
  const call = (value: string, time = 0) =>
    follow(reader.cache.getOrLoad('key', load(value, time), { ttl: '60s', lease }));
  return { clock, reader, writer, load, call, loads: () => made };
}

function loaderOf({ clock }: Setting, made: string[], value: string, time: number): () => Promise<string> {
  return async () => {
    made.push(value);
    await clock.sleep(time);
    return value;
  };
}
