/** 10 processes with 20 callers each, all options as they are by default. */
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { eventually } from '../support/eventually.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import {
  type Answer,
  type Crowd,
  type LoadPlan,
  median,
  now,
  print,
  type Question,
  startCrowd,
  tail,
} from './crowd.js';

const PROCESSES = 10;
const CALLERS = 20;
const LEASE = 5_000;
/** The bound we promise on how long after a load's end the last caller is answered, whatever may be denied to us. */
const SLOWEST_POLL = 600;
/** For a busy machine: 200 callers in ten processes on two cores. */
const SLACK = 1_500;

/** S9: those who wait for a load that takes a second hear of its end after about a second. */
const LOAD_TIME = 1_000;
/** Where a poll has to find the end, a shorter one tells as much. */
const SHORT_LOAD_TIME = 400;

jest.setTimeout(60_000);

let redis: RedisServer;
let crowd: Crowd;

beforeAll(async () => {
  redis = await startRedis({
    users: [
      'user nosubscribe on >secret ~* &* +@all -subscribe -psubscribe -ssubscribe',
      'user nopublish on >secret ~* &* +@all -publish -spublish',
    ].join('\n'),
  });
});
afterAll(() => redis.stop());

interface Ending extends Pick<Question, 'options'> {
  readonly load: LoadPlan;
  readonly expected: (answer: Answer) => void;
}

/** S8 and S9: how a load may end without a value being stored, and `null`. */
const ENDINGS: Record<string, Ending> = {
  throws: {
    load: { fails: 'no such thing' },
    expected: ({ error }) =>
      expect(error).toMatchObject({ name: 'RangeError', message: 'no such thing', code: 'E_LOAD' }),
  },
  'gives null': { load: { gives: null }, expected: ({ value }) => expect(value).toBeNull() },
  'gives undefined': {
    load: { gives: undefined },
    expected: ({ value, error }) => expect([value, error]).toEqual([undefined, undefined]),
  },
  'is refused by cacheIf': {
    load: { gives: 'refused' },
    options: { ttl: '60s', refuse: true },
    expected: ({ value }) => expect(value).toBe('refused'),
  },
  'has a ttl of 0': {
    load: { gives: 'short' },
    options: { ttl: 0 },
    expected: ({ value }) => expect(value).toBe('short'),
  },
};

async function expectOneLoad(key: string, takes: number, { load, options, expected }: Ending): Promise<void> {
  const answers = await crowd.ask(key, { callers: CALLERS, load: { takes, ...load }, ...(options && { options }) });
  const loads = crowd.loads(key);
  expect(loads).toHaveLength(1);
  expect(answers).toHaveLength(PROCESSES * CALLERS);
  for (const answer of answers) expected(answer);
  print(`last answer ${tail(loads, answers).toFixed(1)} ms after the load's end`);
  expect(tail(loads, answers)).toBeLessThan(SLOWEST_POLL + SLACK);
  expect(await redis.client().exists(crowd.lockName(key))).toBe(0);
}

describe.each([
  ['all rights', undefined],
  ['SUBSCRIBE denied', 'nosubscribe'],
  ['PUBLISH denied', 'nopublish'],
])('R8, S8, S9: %s', (_rights, username) => {
  beforeAll(async () => {
    const { port } = redis;
    const connection = username ? { port, username, password: 'secret' } : { port };
    await redis.client().flushall();
    crowd = await startCrowd({ connection }, PROCESSES);
  });
  afterAll(() => crowd.stop());

  test.each(Object.keys(ENDINGS))('a load that %s is one load, and everybody gets what it came to', (name) =>
    expectOneLoad(name, username ? SHORT_LOAD_TIME : LOAD_TIME, ENDINGS[name]!),
  );

  test('no process warns of more than the right that it lacks, and of that once', async () => {
    for (const each of crowd.processes) expect(await each.call('warnings')).toHaveLength(username ? 1 : 0);
  });

  test('after a load that threw the next call loads again', async () => {
    await crowd.processes[0]!.call('ask', 'again', { load: { fails: 'not yet' } });
    expect(await crowd.processes[0]!.call('ask', 'again', { load: { gives: 'now' } })).toMatchObject([
      { value: 'now' },
    ]);
    expect(await crowd.processes[1]!.call('ask', 'again', {})).toMatchObject([{ value: 'now' }]);
  });
});

test('R8: only the leader may not publish: its followers, who listen, find the end of its load by polling', async () => {
  await redis.client().flushall();
  await redis.resetStats();
  crowd = await startCrowd({ connection: redis.url }, 2);
  try {
    await crowd.untilListening(redis);
    const followers = [...crowd.processes];
    const [leader] = await crowd.grow(1, {
      connection: { port: redis.port, username: 'nopublish', password: 'secret' },
    });
    const question = { callers: CALLERS, load: { takes: SHORT_LOAD_TIME, gives: 'x' } };
    const led = leader!.call('ask', 'silent', question);
    await eventually(() => crowd.loads('silent')[0], { every: 5 });
    const followed = followers.map((each) => each.call('ask', 'silent', question));
    const answers = (await Promise.all([led, ...followed])).flat();
    const loads = crowd.loads('silent');
    expect(loads).toHaveLength(1);
    for (const { value } of answers) expect(value).toBe('x');
    expect(tail(loads, answers)).toBeLessThan(SLOWEST_POLL + SLACK);
    expect(await redis.client().exists(crowd.lockName('silent'))).toBe(0);

    // What it evicts is evicted, though it may not tell the one that loads.
    const early = followers[0]!.call('ask', 'evicted', { load: { takes: SHORT_LOAD_TIME, gives: 'old' } });
    await eventually(() => crowd.loads('evicted')[0], { every: 5 });
    await leader!.call('evict', 'evicted');
    expect(await leader!.call('ask', 'evicted', { load: { gives: 'new' } })).toMatchObject([{ value: 'new' }]);
    expect(await early).toMatchObject([{ value: 'old' }]);
    expect(await followers[1]!.call('get', 'evicted')).toBe('new');
  } finally {
    await crowd.stop();
  }
});

describe('default options', () => {
  beforeAll(async () => {
    await redis.client().flushall();
    crowd = await startCrowd({ connection: redis.url }, PROCESSES);
  });
  afterAll(() => crowd.stop());

  test('S5: the loader takes three times the lease: one load, and followers are answered when it ends', async () => {
    const answers = await crowd.ask('long', { callers: CALLERS, load: { takes: 3 * LEASE, gives: 'x' } });
    const loads = crowd.loads('long');
    expect(loads).toHaveLength(1);
    for (const { value } of answers) expect(value).toBe('x');
    const late = answers.map(({ at }) => at - loads[0]!.endedAt!);
    print(
      `answers after the load's end: median ${median(late).toFixed(1)} ms, last ${Math.max(...late).toFixed(1)} ms`,
    );
    expect(median(late)).toBeLessThan(SLACK);
  });

  test('S7: an eviction every 80 ms against a loader of 100 ms, for 5 s: no timeout, and no storm of loads', async () => {
    const until = now() + 5_000;
    const load = { takes: 100, gives: 'x' };
    const asked = crowd.processes.map((each) =>
      each.call('keepAsking', 'evicted', { callers: CALLERS, until, pause: 20, load }),
    );
    let evictions = 0;
    const evicting = crowd.processes.at(-1)!;
    for (let due = now(); due < until; due += 80) {
      await new Promise((resolve) => setTimeout(resolve, due - now()));
      await evicting.call('evict', 'evicted');
      evictions++;
    }
    const results = await Promise.all(asked);
    for (const { error } of results) expect(error).toBeUndefined();
    const answered = results.reduce((sum, each) => sum + each.answered, 0);
    const loads = crowd.loads('evicted').length;
    const last = Math.max(...results.map(({ lastAt }) => lastAt)) - until;
    print(`${evictions} evictions, ${loads} loads, ${answered} answers, the last ${last.toFixed(0)} ms after the end`);
    // One is under way at the start and one may be at the end; an eviction ends one and begins one.
    expect(loads).toBeLessThanOrEqual(evictions + 2);
    expect(last).toBeLessThan(SLOWEST_POLL + SLACK);
  });

  // Last, since it leaves one process less.
  test('S4: the leader is killed: one further load, and everybody else is answered', async () => {
    const at = now() + 50;
    const asked = crowd.processes.map((each) =>
      each.call('ask', 'killed', { callers: CALLERS, at, load: { takes: 1_000, gives: 'x' } }).catch(() => []),
    );
    const { leader, others } = await crowd.leader('killed');
    await eventually(async () => {
      const lock = (await redis.client().get(crowd.lockName('killed'))) ?? '';
      return lock.split(',').length === PROCESSES;
    });
    await leader.kill();
    const killedAt = now();
    const answers = (await Promise.all(asked)).flat();
    expect(answers).toHaveLength(others.length * CALLERS);
    for (const { value } of answers) expect(value).toBe('x');
    const loads = crowd.loads('killed');
    expect(loads).toHaveLength(2);
    const waited = Math.max(...answers.map((answer) => answer.at)) - killedAt;
    print(`last answer ${waited.toFixed(0)} ms after the kill`);
    expect(waited).toBeLessThan(LEASE + 1_000 + SLACK);
  });
});
