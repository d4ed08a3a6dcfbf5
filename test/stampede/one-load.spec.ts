import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.js';
import { type FaultProxy, startProxy } from '../support/fault-proxy.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { type Crowd, median, now, print, startCrowd, tail } from './crowd.js';

let redis: RedisServer;
let crowd: Crowd | undefined;
let proxy: FaultProxy | undefined;

beforeAll(async () => {
  // For S5: a user who may take locks but not renew them.
  redis = await startRedis({ users: 'user norenew on >secret ~* &* +@all -pexpire' });
});
afterAll(() => redis.stop());
afterEach(async () => {
  await crowd?.stop();
  await proxy?.stop();
  crowd = undefined;
  proxy = undefined;
  await redis.client().flushall();
  await redis.resetStats();
});

test('S2: 4 processes with 250 callers each on a cold key make one load, ten times over', async () => {
  crowd = await startCrowd({ connection: redis.url }, 4);
  await crowd.untilListening(redis);
  // Whoever comes first to a server has to teach it the scripts.
  await crowd.ask('warm-up', {});
  const counts: number[] = [];
  const tails: number[] = [];
  for (let run = 0; run < 10; run++) {
    const key = `cold-${run}`;
    await redis.resetStats();
    const answers = await crowd.ask(key, { callers: 250, load: { takes: 200, gives: { run } } });
    counts.push(await redis.commandCount());
    const loads = crowd.loads(key);
    expect(loads).toHaveLength(1);
    expect(answers).toHaveLength(1_000);
    for (const { value } of answers) expect(value).toEqual({ run });
    tails.push(tail(loads, answers));
  }
  print(
    `commands ${counts.join(' ')}; last answer ${tails.map((ms) => ms.toFixed(1)).join(' ')} ms after the load's end`,
  );
  expect(Math.max(...counts)).toBeLessThanOrEqual(50);
  expect(median(tails)).toBeLessThan(200);
});

test('S3: while the leader writes, slowly, another process contends: the lock is held until the value is there', async () => {
  proxy = await startProxy(redis.port);
  crowd = await startCrowd({ connection: redis.url }, 1);
  const [other] = crowd.processes;
  const [leader] = await crowd.grow(1, { connection: `redis://127.0.0.1:${proxy.port}` });
  let writtenAt = 0;
  proxy.onRequest((request) => {
    if (!request.includes('slowly written')) return 'pass';
    writtenAt = now();
    return { delay: 200 };
  });
  const question = { callers: 20, load: { takes: 100, gives: 'slowly written' } };
  const led = leader!.call('ask', 'key', question);
  await eventually(() => crowd!.loads('key')[0], { every: 5 });
  const followed = other!.call('ask', 'key', question);
  await eventually(() => writtenAt > 0, { every: 5 });
  const contended = other!.call('ask', 'key', question);
  expect(await redis.client().exists(crowd.lockName('key'))).toBe(1);
  expect(await redis.client().exists(crowd.valueName('key'))).toBe(0);

  const answers = (await Promise.all([led, followed, contended])).flat();
  expect(answers).toHaveLength(60);
  for (const { value, at } of answers) {
    expect(value).toBe('slowly written');
    expect(at - writtenAt).toBeGreaterThan(195);
  }
  expect(crowd.loads('key')).toHaveLength(1);
  expect(await redis.client().exists(crowd.lockName('key'))).toBe(0);
});

test('S4: the leader is killed while 50 callers wait in another process: one of them leads when the lease ends', async () => {
  crowd = await startCrowd({ connection: redis.url }, 2);
  const asked = crowd.processes.map((each) =>
    each.call('ask', 'key', { callers: 50, load: { takes: 500, gives: 'x' } }).catch(() => 'killed' as const),
  );
  const { leader } = await crowd.leader('key');
  await eventually(async () => (await redis.client().get(crowd!.lockName('key')))?.includes(','));
  await leader.kill();
  const killedAt = now();
  const leaseLeft = await redis.pttl(crowd.lockName('key'));

  const answers = (await Promise.all(asked)).filter((each) => each !== 'killed').flat();
  expect(answers).toHaveLength(50);
  for (const { value } of answers) expect(value).toBe('x');
  const loads = crowd.loads('key');
  expect(loads).toHaveLength(2);
  print(`the new leader loads ${(loads[1]!.beganAt - killedAt - leaseLeft).toFixed(1)} ms after the lease's end`);
  expect(loads[1]!.beganAt - killedAt).toBeLessThan(leaseLeft + 1_000);
  expect(await redis.client().exists(crowd.valueName('key'))).toBe(1);
  expect(await redis.client().exists(crowd.lockName('key'))).toBe(0);
});

test('S5: a loader that takes three times the lease loads once', async () => {
  crowd = await startCrowd({ connection: redis.url, options: { defaults: { lease: 1_500 } } }, 3);
  const answers = await crowd.ask('key', { callers: 20, load: { takes: 4_500, gives: 'x' } });
  expect(crowd.loads('key')).toHaveLength(1);
  for (const { value } of answers) expect(value).toBe('x');
});

test('S5: renewal is refused: another process loads when the lease ends, and the late write does not overwrite it', async () => {
  const options = { defaults: { lease: 400 } };
  crowd = await startCrowd({ connection: redis.url, options }, 1);
  const [other] = crowd.processes;
  const { port } = redis;
  const [slow] = await crowd.grow(1, { connection: { port, username: 'norenew', password: 'secret' } });
  const late = slow!.call('ask', 'key', { load: { takes: 1_500, gives: 'old' } });
  await eventually(() => crowd!.loads('key')[0], { every: 5 });
  expect(await other!.call('ask', 'key', { load: { gives: 'new' } })).toMatchObject([{ value: 'new' }]);
  // It asked before the source changed: both are right, and which it is depends on what its next renewal finds.
  expect(['old', 'new']).toContain((await late)[0]!.value);
  expect(await other!.call('get', 'key')).toBe('new');
  expect(await slow!.call('get', 'key')).toBe('new');
  expect(crowd.loads('key')).toHaveLength(2);
});

test('S5: a leader that was frozen for longer than its lease does not overwrite what came after it', async () => {
  crowd = await startCrowd({ connection: redis.url, options: { defaults: { lease: 400 } } }, 2);
  const [frozen, other] = crowd.processes;
  const late = frozen!.call('ask', 'key', { load: { takes: 600, gives: 'old' } });
  await eventually(() => crowd!.loads('key')[0], { every: 5 });
  frozen!.freeze();
  expect(await other!.call('ask', 'key', { load: { gives: 'new' } })).toMatchObject([{ value: 'new' }]);
  frozen!.thaw();
  await late;
  expect(await other!.call('get', 'key')).toBe('new');
  expect(await redis.client().exists(crowd.lockName('key'))).toBe(0);
});

test('S7: an eviction during a load: the old value is not stored, and later calls get the new one in every process', async () => {
  crowd = await startCrowd({ connection: redis.url }, 3);
  const [loading, evicting, third] = crowd.processes;
  for (let run = 0; run < 5; run++) {
    const key = `key-${run}`;
    const early = loading!.call('ask', key, { callers: 5, load: { takes: 600, gives: 'old' } });
    await eventually(() => crowd!.loads(key)[0], { every: 5 });
    const waiting = third!.call('ask', key, { load: { takes: 20, gives: 'new' } });
    await evicting!.call('evict', key);
    const question = { callers: 5, load: { takes: 20, gives: 'new' } };
    const later = await Promise.all([loading, evicting, third].map((each) => each!.call('ask', key, question)));
    for (const { value } of later.flat()) expect(value).toBe('new');
    await waiting;
    for (const { value } of await early) expect(value).toBe('old');
    expect(await third!.call('get', key)).toBe('new');
    expect(crowd.loads(key)).toHaveLength(2);
  }
});
