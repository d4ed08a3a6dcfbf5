import { describe, expect, jest, test } from '@jest/globals';
import { type Act, FAULTS, type Finding, FULL, LOADS, meet, type Rival, WRITES } from './ambiguity.js';
import { print } from './crowd.js';

/** The bound we promise on what a call takes beside its loader. */
const BOUND = 600;
/** For a busy machine: a dozen servers at once. */
const SLACK = 900;

jest.setTimeout(60_000);

describe.each(Object.keys(FAULTS))('R4: %s', (name) => {
  test('every call settles, nothing stays locked, and nothing old comes back', async () => {
    // What two writers do at the same time has no order, so to a write the rival comes later.
    const cells: (readonly [Act, Rival])[] = [
      ...LOADS.flatMap((act) => [[act, 'sets'] as const, [act, 'evicts'] as const]),
      ...WRITES.map((act) => [act, 'sets later'] as const),
      ...[...LOADS, ...WRITES].map((act) => [act, 'idle'] as const),
    ];
    const findings = await Promise.all(
      cells.map(async ([act, rival]) => ({ act, rival, ...(await meet(act, FAULTS[name]!, rival)) })),
    );
    print(findings.map(({ act, outcome, overhead }) => `${act} ${outcome} ${overhead.toFixed(0)} ms`).join(', '));
    for (const finding of findings) expectGood(finding);
    // Scripts are not rolled back: what can fail in one comes before its lock or by `pcall`.
    if (name === FULL) expect(findings.filter(({ lockLeftAtFirst }) => lockLeftAtFirst)).toEqual([]);
  });
});

function expectGood({ overhead, ...found }: Finding & { act: Act; rival: Rival }): void {
  const { act, rival, outcome, stored } = found;
  const oneOf = (good: unknown[], is: unknown) => (good.includes(is) ? is : good);
  expect({ ...found, settledInTime: overhead < BOUND + SLACK }).toEqual({
    ...found,
    settledInTime: true,
    lockLeft: false,
    // Whoever loads gets a value, whatever becomes of Redis.
    outcome: LOADS.includes(act) ? oneOf(['old', 'new'], outcome) : outcome,
    next: rival === 'idle' ? undefined : 'new',
    stored: oneOf(mayBeStored(act, rival), stored),
  });
}

/** `undefined` where who loaded last could not store, or where an eviction that nobody acknowledged came late. */
function mayBeStored(act: Act, rival: Rival): unknown[] {
  if (rival === 'idle') return ['old', 'new', undefined];
  return rival === 'evicts' || act === 'evict' ? ['new', undefined] : ['new'];
}
