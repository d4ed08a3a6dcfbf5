import { expect, test } from '@jest/globals';
import { ExpiringMap } from '../../lib/memory/expiring-map.js';
import { TestClock } from '../support/clock.js';

test('forgets at the end of the time to live, and not before', async () => {
  const clock = new TestClock();
  const map = new ExpiringMap<string>(clock);
  map.set('a', '1', 100);
  map.set('b', '2', Infinity);
  await clock.advance(99);
  expect([map.get('a'), map.timeLeft('a')]).toEqual(['1', 1]);
  await clock.advance(1);
  expect([map.get('a'), map.timeLeft('a')]).toEqual([undefined, 0]);
  await clock.advance(1e9);
  expect([map.get('b'), map.timeLeft('b')]).toEqual(['2', Infinity]);
  map.delete('b');
  expect(map.get('b')).toBeUndefined();
});

test('drops the least recently used beyond its maximum', () => {
  const map = new ExpiringMap<string>(new TestClock(), 2);
  map.set('a', '1', Infinity);
  map.set('b', '2', Infinity);
  map.get('a');
  map.set('c', '3', Infinity);
  expect(['a', 'b', 'c'].map((key) => map.get(key))).toEqual(['1', undefined, '3']);
  expect(map.size).toBe(2);
});

test('keeps few that expired, though nobody asks for them', async () => {
  const clock = new TestClock();
  const map = new ExpiringMap<number>(clock);
  for (let i = 0; i < 200; i += 1) map.set(`long${i}`, i, Infinity);
  for (let i = 0; i < 10_000; i += 1) {
    map.set(`short${i}`, i, 1);
    if (i % 100 === 0) await clock.advance(1);
    expect(map.size).toBeLessThanOrEqual(2 * 300 + 1);
  }
  expect(map.get('long0')).toBe(0);
});
