/** A failover under Sentinel, in the middle of a load and under a crowd: all are answered, and then all holds again. */
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { type Crowd, now, startCrowd } from '../stampede/crowd.js';
import { eventually } from '../support/eventually.js';
import { type RedisSentinel, startSentinel } from '../support/redis-sentinel.js';
import { expectRecovery, insistDuring, LEASE } from './insist.js';

jest.setTimeout(120_000);

const PROCESSES = 3;
const CALLERS = 10;
const LOAD_TIME = 1_500;
const KEYS = ['one', 'two', 'three'];

let sentinel: RedisSentinel;
let crowd: Crowd;

beforeEach(async () => {
  sentinel = await startSentinel();
  crowd = await startCrowd({ connection: sentinel.options }, PROCESSES);
});
afterEach(async () => {
  await crowd.stop();
  await sentinel.stop();
});

const failovers: [string, () => Promise<unknown>][] = [
  // The old primary keeps its sockets and says READONLY.
  ['is asked for', () => sentinel.failover()],
  [
    'follows a killed primary',
    async () => {
      const before = await sentinel.primary();
      await before.kill();
      await eventually(async () => (await sentinel.primary()) !== before, { within: 30_000 });
    },
  ],
];

test.each(failovers)('a failover that %s, in the middle of a load', async (_how, failOver) => {
  const asked = crowd.ask('long', { callers: CALLERS, load: { takes: LOAD_TIME, gives: 'x' } });
  await eventually(() => crowd.loads('long')[0], { every: 5 });
  await insistDuring(crowd, KEYS, failOver, { revived: LEASE });
  const answers = await asked;
  expect(answers.map(({ value }) => value)).toEqual(Array(PROCESSES * CALLERS).fill('x'));
  // At worst, everybody on its own.
  expect(crowd.loads('long').length).toBeLessThanOrEqual(PROCESSES);

  await expectRecovery(crowd, KEYS, sentinel.servers);
  await expectInvariants();
});

/** One load; eviction wins, also over a load that is under way; locks exclude, and fencing tokens grow. */
async function expectInvariants(): Promise<void> {
  const [loading, evicting, third] = crowd.processes;
  const early = loading!.call('ask', 'evicted', { load: { takes: 300, gives: 'old' } });
  await eventually(() => crowd.loads('evicted')[0], { every: 5 });
  await evicting!.call('evict', 'evicted');
  const later = await crowd.ask('evicted', { callers: 5, load: { takes: 20, gives: 'new' } });
  for (const { value } of later) expect(value).toBe('new');
  expect(await early).toMatchObject([{ value: 'old' }]);
  expect(await third!.call('get', 'evicted')).toBe('new');

  const plan = { callers: 3, hold: 20, options: { wait: 20_000 } };
  const held = (await Promise.all(crowd.processes.map((each) => each.call('lock', 'lock', plan)))).flat();
  held.sort((a, b) => a.from - b.from);
  for (const [i, { from, fencingToken }] of held.entries()) {
    const before = held[i - 1];
    if (!before) continue;
    expect(from).toBeGreaterThanOrEqual(before.until);
    expect(fencingToken).toBeGreaterThan(before.fencingToken);
  }
  expect(held).toHaveLength(PROCESSES * 3);
  expect(held.every(({ until }) => until <= now())).toBe(true);
}
