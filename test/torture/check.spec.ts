/** The checker on histories made by hand: what is right passes, what is wrong is found, and what is excused is excused. */
import { describe, expect, test } from '@jest/globals';
import { type Check, check } from './check.js';
import type { Call, Fault, History, Hold, Load, Write } from './history.js';
import { describePlan, planOf } from './plan.js';
import { LOCK_PROFILES, PROFILES } from './workload.js';

const KEY = 'plain-0';

/** Two processes, `a` and `b`, for a minute. Times are milliseconds from the start. */
function historyOf(parts: Partial<History>): History {
  return {
    seed: 1,
    topology: 'standalone',
    commandTimeout: 500,
    from: 0,
    until: 60_000,
    profiles: PROFILES,
    lockProfiles: LOCK_PROFILES,
    faults: [],
    processes: [life('a'), life('b')],
    calls: [],
    loads: [],
    writes: [],
    holds: [],
    refusals: [],
    probes: [],
    sightings: [],
    measurements: [],
    accidents: [],
    ...parts,
  };
}

function found(parts: Partial<History>): Check[] {
  return [...new Set(check(historyOf(parts)).map((finding) => finding.check))];
}

function life(process: string, end: 'stayed' | 'killed' | 'left' = 'stayed', until = 60_000) {
  return { process, store: `store${process}`, from: 0, until, end };
}

function load(process: string, from: number, until: number | undefined, more: Partial<Load> = {}): Load {
  const id = `${process}${from}`;
  const profile = (more.key ?? KEY).replace(/-\d+$/, '');
  return {
    id,
    process,
    key: KEY,
    profile,
    variant: 0,
    callFrom: from,
    from,
    until,
    came: 'value',
    abortedAt: undefined,
    version: 0,
    ...more,
  };
}

function call(process: string, from: number, until: number | undefined, more: Partial<Call> = {}): Call {
  const profile = (more.key ?? KEY).replace(/-\d+$/, '');
  return { process, key: KEY, profile, variant: 0, from, until, ...more };
}

function write(process: string, from: number, until: number | undefined, more: Partial<Write> = {}): Write {
  return {
    id: `${process}w${from}`,
    process,
    key: KEY,
    by: 'evict',
    from,
    until,
    acknowledged: until !== undefined,
    version: 1,
    ...more,
  };
}

function hold(process: string, from: number, releasedAt: number | undefined, more: Partial<Hold> = {}): Hold {
  return {
    id: `${process}${from}`,
    process,
    key: 'short',
    profile: 'short',
    token: `store${process}#${from}`,
    fencingToken: from,
    askedAt: from - 2,
    from,
    lostAt: undefined,
    releasedAt,
    until: releasedAt,
    wasOurs: true,
    extendedAt: [],
    ...more,
  };
}

function fault(is: Fault['is'], from: number, until: number, more: Partial<Fault> = {}): Fault {
  return { is, what: is, from, until, ...more };
}

test('a history in which nothing goes wrong', () => {
  expect(
    found({
      calls: [call('a', 1_000, 1_060, { got: 'a1001' }), call('b', 2_000, 2_001, { got: 'a1001' })],
      loads: [load('a', 1_001, 1_050)],
      writes: [write('b', 3_000, 3_002)],
      holds: [hold('a', 1_000, 1_050), hold('b', 1_051, 1_090)],
      sightings: [{ at: 1_020, kind: 'cache', key: KEY, token: 'storea#7' }],
    }),
  ).toEqual([]);
});

describe('one load', () => {
  const two = [load('a', 1_000, 1_080), load('b', 1_050, 1_090)];

  test('two at once', () => {
    expect(found({ loads: two })).toEqual(['one load']);
  });

  test.each([
    ['an eviction between them', { writes: [write('b', 1_020, 1_021)] }],
    [
      'an eviction that was not acknowledged, and may be made up for',
      { writes: [write('b', 200, 700, { acknowledged: false })], faults: [fault('redis away', 100, 900)] },
    ],
    ['Redis away', { faults: [fault('redis away', 1_040, 5_000)] }],
    ['the second cut off', { faults: [fault('blackhole', 500, 5_000, { process: 'b' })] }],
    ['the locks lost', { faults: [fault('locks dropped', 1_020, 1_020, { lost: 'locks' })] }],
    [
      'the first killed before',
      {
        loads: [load('a', 1_000, undefined, { came: undefined }), load('b', 1_050, 1_090)],
        processes: [life('a', 'killed', 1_040), life('b')],
      },
    ],
    [
      'the first deaf, and aborted before',
      { loads: [load('a', 1_000, 1_080, { abortedAt: 1_049 }), load('b', 1_050, 1_090)] },
    ],
  ] as [string, Partial<History>][])('excused by %s', (_why, parts) => {
    expect(found({ loads: two, ...parts })).toEqual([]);
  });

  test.each([
    ['an eviction after both', { writes: [write('b', 1_060, 1_061)] }],
    ['an eviction of another key', { writes: [write('b', 1_020, 1_021, { key: 'plain-1' })] }],
    ['an eviction long before', { writes: [write('b', -1_000, -900)] }],
    ['flushed scripts', { faults: [fault('script flush', 1_020, 1_021)] }],
    ['cut connections', { faults: [fault('cut', 1_020, 1_021)] }],
    ['a renewal that failed', { faults: [fault('renewal failed', 1_020, 1_020, { process: 'a' })] }],
    ['Redis away long before', { faults: [fault('redis away', -9_000, -8_000)] }],
    [
      'a freeze of the first that is shorter than its lease',
      { faults: [fault('freeze', 1_010, 1_040, { process: 'a' })] },
    ],
    ['a freeze of somebody else', { faults: [fault('freeze', 900, 5_000, { process: 'c' })] }],
    [
      'the first killed later',
      {
        loads: [load('a', 1_000, undefined, { came: undefined }), load('b', 1_050, 1_090)],
        processes: [life('a', 'killed', 1_060), life('b')],
      },
    ],
  ] as [string, Partial<History>][])('not excused by %s', (_why, parts) => {
    expect(found({ loads: two, ...parts })).toContain('one load');
  });

  test('the last resort of a caller whose wait is over is no second load', () => {
    const key = 'impatient-0';
    expect(
      found({ loads: [load('a', 1_000, 1_400, { key }), load('b', 1_300, 1_500, { key, callFrom: 1_100 })] }),
    ).toEqual([]);
    expect(
      found({ loads: [load('a', 1_000, 1_400, { key }), load('b', 1_200, 1_500, { key, callFrom: 1_100 })] }),
    ).toEqual(['one load']);
  });

  test('one after the other, though the first is stored', () => {
    const loads = [load('a', 1_000, 1_080), load('b', 5_000, 5_050)];
    expect(found({ loads })).toEqual(['needless load']);
    expect(found({ loads: [load('a', 1_000, 1_080), load('b', 61_100, 61_150)] })).toEqual([]);
    expect(found({ loads: [load('a', 1_000, 1_080, { came: 'error' }), load('b', 5_000, 5_050)] })).toEqual([]);
    expect(found({ loads, writes: [write('a', 3_000, 3_001)] })).toEqual([]);
    expect(found({ loads, faults: [fault('redis away', 3_000, 3_100, { lost: 'locks' })] })).toEqual([]);
    // Written at the end, which was not answered.
    expect(found({ loads, faults: [fault('redis away', 1_070, 1_700)] })).toEqual([]);
  });

  test('one after a set', () => {
    const set = write('a', 900, 905, { by: 'set' });
    const loads = [load('b', 1_000, 1_080)];
    expect(found({ loads, writes: [set] })).toEqual(['needless load']);
    expect(
      found({ loads, writes: [{ ...set, acknowledged: false }], faults: [fault('redis away', 800, 904)] }),
    ).toEqual([]);
    expect(found({ loads, writes: [set, write('b', 904, 910, { by: 'set' })] })).toEqual([]);
    expect(found({ loads, writes: [set, write('b', 950, 955)] })).toEqual([]);
  });

  test('who waited since before the load gets its outcome', () => {
    const key = 'refused-0';
    const loads = [load('a', 1_000, 1_700, { key }), load('b', 1_701, 2_400, { key })];
    expect(found({ loads, calls: [call('b', 900, 2_401, { key, got: 'b1701' })] })).toEqual(['outcome shared']);
    expect(found({ loads, calls: [call('b', 1_100, 2_401, { key, got: 'b1701' })] })).toEqual([]);
    expect(found({ loads, calls: [call('b', 900, 1_702, { key, got: 'a1000' })] })).toEqual([]);
    const calls = [call('b', 900, 2_401, { key, got: 'b1701' })];
    const loses = (process: string) => [fault('blackhole', 1_650, 1_750, { process })];
    expect(found({ loads, calls, faults: loses('a') })).toEqual([]);
    expect(found({ loads, calls, faults: loses('c') })).toEqual(['outcome shared']);
  });
});

describe('eviction wins', () => {
  const loads = [load('a', 1_000, 1_050)];
  const evicted = [write('b', 2_000, 2_002)];
  const old = (process: string, from = 2_003) => call(process, from, from + 1, { got: 'a1000' });

  test('an old value after an acknowledged eviction', () => {
    expect(found({ loads, writes: evicted, calls: [old('b')] })).toEqual(['eviction wins']);
    expect(found({ loads, writes: [write('b', 2_000, 2_002, { by: 'expire' })], calls: [old('b')] })).toEqual([
      'eviction wins',
    ]);
    expect(found({ loads, writes: [write('b', 2_000, 2_002, { by: 'set' })], calls: [old('b')] })).toEqual([
      'eviction wins',
    ]);
  });

  test('nothing wrong: asked before it was acknowledged, or loaded after it was called', () => {
    expect(found({ loads, writes: evicted, calls: [old('b', 2_001)] })).toEqual([]);
    expect(
      found({ loads: [load('a', 2_001, 2_050)], writes: evicted, calls: [call('b', 2_003, 2_060, { got: 'a2001' })] }),
    ).toEqual([]);
    expect(
      found({
        loads,
        writes: [write('b', 2_000, 2_002, { acknowledged: false })],
        calls: [old('a')],
        faults: [fault('redis away', 1_990, 2_500)],
      }),
    ).toEqual([]);
  });

  test('a set is what it wrote, and one that races an eviction may win', () => {
    const set = write('a', 1_500, 1_503, { by: 'set' });
    expect(found({ writes: [set, ...evicted], calls: [call('b', 2_003, 2_004, { got: set.id })] })).toEqual([
      'eviction wins',
    ]);
    const racing = write('a', 1_999, 2_005, { by: 'set' });
    expect(found({ writes: [racing, ...evicted], calls: [call('b', 2_010, 2_011, { got: racing.id })] })).toEqual([]);
  });

  test('who may be given an old value may be after expire, and not after evict', () => {
    const windows = (from: number) => call('b', from, from + 1, { key: 'expired-0', variant: 1, got: 'a1000' });
    const key = 'expired-0';
    expect(
      found({
        loads: [load('a', 1_000, 1_050, { key })],
        writes: [write('b', 2_000, 2_002, { key, by: 'expire' })],
        calls: [windows(2_003)],
      }),
    ).toEqual([]);
    expect(
      found({
        loads: [load('a', 1_000, 1_050, { key })],
        writes: [write('b', 2_000, 2_002, { key })],
        calls: [windows(2_003)],
      }),
    ).toEqual(['eviction wins']);
  });

  test('a process that is cut off has its running load, and what it loaded within the last second', () => {
    const faults = [fault('blackhole', 900, 6_000, { process: 'a' })];
    const running = [load('a', 1_000, 2_500)];
    expect(
      found({ loads: running, writes: evicted, calls: [call('a', 2_003, 2_501, { got: 'a1000' })], faults }),
    ).toEqual([]);
    expect(found({ loads: running, writes: evicted, calls: [old('a', 3_400)], faults })).toEqual([]);
    // Kept for too long; of another process; not cut off.
    expect(found({ loads: running, writes: evicted, calls: [old('a', 3_800)], faults })).toEqual(['eviction wins']);
    expect(found({ loads: running, writes: evicted, calls: [old('b', 2_600)], faults })).toEqual(['eviction wins']);
    expect(found({ loads: running, writes: evicted, calls: [old('a', 2_600)] })).toEqual(['eviction wins']);
  });

  test('a failover may lose it', () => {
    const faults = [fault('redis away', 1_900, 4_000, { lost: 'locks and writes' })];
    expect(found({ loads, writes: evicted, calls: [old('b', 4_500)], faults })).toEqual([]);
    expect(found({ loads, writes: [write('b', 7_000, 7_001)], calls: [old('b', 7_002)], faults })).toEqual([
      'eviction wins',
    ]);
  });

  test('one that failed is minded by its own process', () => {
    const faults = [fault('redis away', 1_900, 4_000)];
    const writes = [write('b', 2_000, 2_500, { acknowledged: false })];
    expect(found({ loads, writes, calls: [old('b', 2_600)], faults })).toEqual(['eviction wins']);
    expect(found({ loads, writes, calls: [old('a', 4_500)], faults })).toEqual([]);
    // Its own load, that was running.
    const own = [load('b', 1_950, 2_700)];
    expect(found({ loads: own, writes, calls: [call('b', 2_600, 2_701, { got: 'b1950' })], faults })).toEqual([]);
  });
});

describe('answers', () => {
  test('no older than its ttl and windows', () => {
    const key = 'windows-0';
    const loads = [load('a', 1_000, 1_050, { key })];
    const asked = (from: number, variant: number) => [call('b', from, from + 1, { key, variant, got: 'a1000' })];
    expect(found({ loads, calls: asked(1_190, 0) })).toEqual([]);
    expect(found({ loads, calls: asked(2_000, 0) })).toEqual(['freshness']);
    expect(found({ loads, calls: asked(2_000, 1) })).toEqual([]);
    expect(found({ loads, calls: asked(3_000, 1) })).toEqual(['freshness']);
    expect(found({ loads, calls: asked(6_000, 3) })).toEqual([]);
    expect(found({ loads, calls: asked(7_000, 3) })).toEqual(['freshness']);
  });

  test('who waits, waits no longer than its wait, and not for nobody', () => {
    const timeout = { name: 'CacheWaitTimeoutError', code: 'CACHE_WAIT_TIMEOUT', message: '' };
    const key = 'hasty-0';
    const loads = [load('a', 1_000, 3_000, { key })];
    expect(found({ loads, calls: [call('b', 1_100, 1_401, { key, error: timeout })] })).toEqual([]);
    expect(found({ loads, calls: [call('b', 1_100, 1_200, { key, error: timeout })] })).toEqual(['errors']);
    expect(found({ loads, calls: [call('b', 1_000, 3_001, { key, got: 'a1000' })] })).toEqual(['answered']);
    expect(found({ loads, calls: [call('a', 1_000, 3_001, { key, got: 'a1000' })] })).toEqual([]);
    const waited = [call('b', 1_100, 15_101, { error: timeout })];
    expect(found({ loads: [load('a', 1_000, 12_000)], calls: waited })).toEqual([]);
    expect(found({ loads: [load('a', 1_000, 3_000)], calls: waited })).toEqual(['waits for nobody']);
    expect(
      found({
        loads: [load('a', 1_000, 3_000), load('a', 8_000, 12_000)],
        calls: waited,
        writes: [write('a', 3_100, 3_101)],
      }),
    ).toEqual([]);
  });

  test('who waits does not miss what is loaded meanwhile', () => {
    const key = 'orphaned-0';
    const loads = [load('b', 3_000, 3_500, { key }), load('b', 6_000, 6_500, { key })];
    const error = { name: 'CacheWaitTimeoutError', code: 'CACHE_WAIT_TIMEOUT', message: '' };
    const waited = (from: number) => [call('a', from, from + 5_000, { key, error })];
    expect(found({ loads, calls: waited(2_900) })).toEqual(['waits for nobody']);
    // The first was under way already, the second is over only now.
    expect(found({ loads, calls: waited(3_100) })).toEqual([]);
    expect(found({ loads, calls: waited(2_900), faults: [fault('redis away', 4_000, 4_100)] })).toEqual([]);
  });

  test('none, or too late', () => {
    expect(found({ calls: [call('a', 1_000, undefined)] })).toEqual(['answered']);
    expect(found({ loads: [load('a', 1_000, 1_050)], calls: [call('a', 1_000, 30_000, { got: 'a1000' })] })).toEqual([
      'answered',
    ]);
    expect(
      found({
        loads: [load('a', 1_000, 1_050)],
        calls: [call('a', 1_000, 30_000, { got: 'a1000' })],
        faults: [fault('freeze', 2_000, 29_000, { process: 'a' })],
      }),
    ).toEqual([]);
  });

  test('within the promise while Redis is away', () => {
    const faults = [fault('redis away', 500, 5_000)];
    const key = 'lone-a-1';
    const loads = [load('a', 1_510, 1_520, { key, profile: 'lone' })];
    const asked = (until: number) => [call('a', 1_000, until, { key, profile: 'lone', got: 'a1510' })];
    expect(found({ loads, calls: asked(1_530), faults })).toEqual([]);
    expect(found({ loads, calls: asked(2_900), faults })).toEqual(['answered']);
    expect(found({ loads, calls: asked(2_900) })).toEqual([]);
  });

  test("errors are the loader's own", () => {
    const key = 'failing-0';
    const loads = [load('a', 1_000, 1_050, { key, came: 'error' })];
    const failed = (message: string, code = 'E_PLANNED') => [
      call('b', 1_001, 1_060, { key, error: { name: 'Error', code, message } }),
    ];
    expect(found({ loads, calls: failed('a1000') })).toEqual([]);
    expect(found({ loads, calls: failed('a999') })).toEqual(['errors']);
    expect(found({ loads, calls: failed('The operation was aborted', 'ABORT_ERR') })).toEqual(['errors']);
    expect(found({ loads, calls: failed('', 'CACHE_WAIT_TIMEOUT') })).toEqual(['errors']);
    expect(found({ loads, calls: [call('b', 1_001, 1_060, { key })] })).toEqual(['errors']);
    expect(found({ loads, calls: [call('b', 1_001, 1_060, { key, got: 'a1000' })] })).toEqual(['errors']);
  });

  test('a write fails only while Redis is away', () => {
    const writes = [write('a', 1_000, 1_500, { acknowledged: false })];
    expect(found({ writes })).toEqual(['errors']);
    expect(found({ writes, faults: [fault('redis away', 900, 1_200)] })).toEqual([]);
    expect(found({ writes: [write('a', 1_000, 4_000)] })).toEqual(['answered']);
  });
});

describe('locks', () => {
  test('two holders', () => {
    const holds = [hold('a', 1_000, 1_050), hold('b', 1_020, 1_090)];
    expect(found({ holds })).toEqual(['one holder']);
    // `a` was frozen and doesn't know that it lost it; but it is told so when it gives it back.
    const frozen = [hold('a', 1_000, 7_050, { wasOurs: false }), hold('b', 6_100, 6_200)];
    const faults = [fault('freeze', 1_010, 7_000, { process: 'a' })];
    expect(found({ holds: frozen, faults })).toEqual([]);
    expect(found({ holds: [hold('a', 1_000, 7_050), hold('b', 6_100, 6_200)], faults })).toEqual(['one holder']);
    const dropped = [fault('locks dropped', 1_010, 1_010, { lost: 'locks' })];
    expect(
      found({ holds: [hold('a', 1_000, 1_050, { wasOurs: false }), hold('b', 1_020, 1_090)], faults: dropped }),
    ).toEqual([]);
    expect(found({ holds, faults: dropped })).toEqual(['one holder']);
    expect(
      found({
        holds: [hold('a', 1_000, undefined, { until: undefined }), hold('b', 1_020, 1_090)],
        processes: [life('a', 'killed', 1_010), life('b')],
      }),
    ).toEqual([]);
    expect(found({ holds: [hold('a', 1_000, 1_050, { lostAt: 1_010 }), hold('b', 1_020, 1_090)] })).toEqual([
      'one holder',
    ]);
    expect(
      found({ holds: [hold('a', 1_000, 1_050, { lostAt: 1_010, wasOurs: false }), hold('b', 1_020, 1_090)] }),
    ).toEqual([]);
  });

  test('who lost a lock that Redis lost knows it by the next renewal', () => {
    const held = { key: 'held', profile: 'held' };
    const dropped = fault('locks dropped', 1_990, 1_990, { lost: 'locks' });
    const after = hold('b', 2_000, 7_000, held);
    const unaware = hold('a', 1_000, 5_000, { ...held, wasOurs: false });
    expect(found({ holds: [unaware, after], faults: [dropped] })).toEqual(['one holder']);
    expect(found({ holds: [{ ...unaware, lostAt: 2_900 }, after], faults: [dropped] })).toEqual([]);
    expect(found({ holds: [unaware, after], faults: [dropped, fault('redis away', 2_500, 2_900)] })).toEqual([]);
  });

  test('a fencing token that is no larger', () => {
    expect(found({ holds: [hold('a', 1_000, 1_050), hold('b', 1_100, 1_150, { fencingToken: 1_000 })] })).toEqual([
      'fencing',
    ]);
    expect(
      found({
        holds: [hold('a', 1_000, 1_050), hold('b', 1_100, 1_150, { fencingToken: 7 })],
        faults: [fault('redis away', 1_051, 1_099, { lost: 'locks' })],
      }),
    ).toEqual(['fencing']);
    const late = [hold('a', 1_000, 1_050), hold('b', 1_002, 1_040, { fencingToken: 999, askedAt: 900 })];
    const faults = [fault('locks dropped', 995, 1_010, { lost: 'locks' })];
    expect(found({ holds: late, faults })).toEqual([]);
    // The lock was lost while the reply was on its way, before the next one asked.
    const next = hold('a', 1_000, 4_000, { askedAt: 998 });
    const lost = hold('b', 1_010, 1_200, { fencingToken: 990, askedAt: 900, wasOurs: false });
    expect(found({ holds: [next, lost], faults: [fault('locks dropped', 991, 995, { lost: 'locks' })] })).toEqual([]);
    expect(found({ holds: [next, lost] })).toEqual(expect.arrayContaining(['one holder', 'fencing']));
  });

  test('no answer, or the wrong one', () => {
    const refused = (until: number, error: string) => ({
      refusals: [{ process: 'a', key: 'short', profile: 'short', from: 1_000, until, error }],
    });
    expect(found(refused(3_010, 'LockContendedError'))).toEqual([]);
    expect(found(refused(9_000, 'LockContendedError'))).toEqual(['answered']);
    expect(found(refused(1_500, 'LockUnavailableError'))).toEqual(['errors']);
    expect(found({ ...refused(1_500, 'LockUnavailableError'), faults: [fault('redis away', 900, 2_000)] })).toEqual([]);
    expect(found(refused(1_500, 'TypeError'))).toEqual(['errors']);
  });

  test('contended for the whole wait', () => {
    const refusals = [
      { process: 'a', key: 'short', profile: 'short', from: 1_000, until: 3_010, error: 'LockContendedError' },
    ];
    expect(found({ refusals, holds: [hold('b', 900, 3_000)] })).toEqual([]);
    expect(found({ refusals, holds: [hold('b', 900, 1_300), hold('b', 2_700, 3_300)] })).toEqual([]);
    expect(found({ refusals, holds: [hold('b', 900, 1_300)] })).toEqual(['waits for nobody']);
    expect(
      found({ refusals, holds: [hold('b', 900, undefined)], processes: [life('a'), life('b', 'killed', 950)] }),
    ).toEqual([]);
    // `c` died before it wrote down that it had it.
    const processes = [life('a'), life('b'), life('c', 'killed', 1_400)];
    const sightings = [{ at: 2_900, kind: 'lock', key: 'short', token: 'storec#7' } as const];
    expect(found({ refusals, holds: [hold('b', 900, 1_300)], processes, sightings })).toEqual([]);
    expect(found({ refusals, holds: [hold('b', 900, 1_300)], processes })).toEqual(['waits for nobody']);
  });

  test('a lock that nobody has a use for', () => {
    const seen = { kind: 'cache', key: KEY, token: 'storea#7' } as const;
    const sightings = [4_300, 5_000].map((at) => ({ at, ...seen }));
    const check = 'no lock outlives its attempt';
    expect(found({ sightings })).toEqual([check]);
    expect(found({ sightings, loads: [load('a', 3_000, 3_900)] })).toEqual([check]);
    expect(found({ sightings: sightings.slice(1) })).toEqual([]);
    expect(found({ sightings, loads: [load('b', 4_900, 5_100)] })).toEqual([check]);
    expect(found({ sightings, loads: [load('a', 4_900, 5_100)] })).toEqual([]);
    expect(found({ sightings, writes: [write('a', 4_990, 5_003, { by: 'set' })] })).toEqual([]);
    expect(found({ sightings, faults: [fault('redis away', 3_000, 4_000)] })).toEqual([]);
    expect(found({ sightings, faults: [fault('redis away', 1_000, 1_900)] })).toEqual([check]);
    expect(found({ sightings, processes: [life('a', 'killed', 2_000), life('b')] })).toEqual([]);
    expect(found({ sightings, processes: [life('a', 'killed', -3_000), life('b')] })).toEqual([check]);
    expect(found({ sightings, processes: [life('a', 'left', 2_000), life('b')] })).toEqual([check]);
  });
});

describe('what stays behind', () => {
  const usage = (sockets: number, timers: number, heap: number) => ({
    resources: { TCPSocketWrap: sockets, Timeout: timers },
    heap,
  });
  const measured = (after: ReturnType<typeof usage>, closed = usage(0, 1, 0), signalListeners = 0) => ({
    measurements: [{ process: 'a', before: usage(3, 1, 10_000_000), after, closed, signalListeners }],
  });

  test('sockets, timers, heap, listeners', () => {
    expect(found(measured(usage(2, 1, 11_000_000)))).toEqual([]);
    expect(found(measured(usage(4, 1, 11_000_000)))).toEqual(['nothing grows']);
    expect(found(measured(usage(2, 2, 11_000_000)))).toEqual(['nothing grows']);
    expect(found(measured(usage(2, 1, 30_000_000)))).toEqual(['nothing grows']);
    expect(found(measured(usage(2, 1, 11_000_000), usage(1, 1, 0)))).toEqual(['nothing grows']);
    expect(found(measured(usage(2, 1, 11_000_000), usage(0, 2, 0)))).toEqual(['nothing grows']);
    expect(found(measured(usage(2, 1, 11_000_000), usage(0, 1, 0), 12))).toEqual(['nothing grows']);
  });

  test('accidents', () => {
    expect(found({ accidents: [{ process: 'a', at: 1, what: 'unhandled rejection' }] })).toEqual(['accidents']);
  });

  test('a probe that is not found in the cache, unless something else has happened', () => {
    const probes = [{ process: 'a', after: 'redis frozen', over: 5_000, from: 7_000, until: 7_010, hit: false }];
    const faults = [fault('redis away', 3_000, 5_000)];
    expect(found({ probes, faults })).toEqual(['recovers']);
    expect(found({ probes: [{ ...probes[0]!, hit: true }], faults })).toEqual([]);
    expect(found({ probes, faults: [...faults, fault('freeze', 6_000, 6_500, { process: 'a' })] })).toEqual([]);
    expect(found({ probes, faults: [...faults, fault('freeze', 6_000, 6_500, { process: 'b' })] })).toEqual([
      'recovers',
    ]);
  });
});

test('the same seed plans the same, another one something else', () => {
  expect(planOf(7, 60, 'standalone')).toEqual(planOf(7, 60, 'standalone'));
  expect(describePlan(planOf(7, 60, 'standalone'))).not.toBe(describePlan(planOf(8, 60, 'standalone')));
});
