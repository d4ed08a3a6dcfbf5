/** What may happen in a run, at random. */
import fc, { type Arbitrary } from 'fast-check';
import type { StoreCommand } from '../../lib/core/events.js';
import type { Fault, Slowness } from './scheduled-store.js';

export interface CallAction {
  readonly type: 'call';
  readonly process: number;
  readonly key: string;
  /** What its loader's value comes to, should it be the one that loads. */
  readonly is: 'stored' | 'refused' | 'ttl 0' | 'short' | 'throws';
  /** How often the scheduler has to pick its loader until that ends. */
  readonly ticks: number;
  readonly wait: 'long' | 'throw' | 'load';
  readonly leaves: boolean;
  readonly abortWhenUnused: boolean;
}

export type Action =
  | CallAction
  /** Every process calls at once. */
  | (Omit<CallAction, 'type'> & { readonly type: 'crowd' })
  /** One call for both keys; what `is` says holds for `key`, the other one is stored. */
  | (Omit<CallAction, 'type'> & { readonly type: 'many' })
  | { readonly type: 'get' | 'evict' | 'expire' | 'set'; readonly process: number; readonly key: string }
  | { readonly type: 'resubscribe' | 'lose wake-ups' | 'crash'; readonly process: number }
  | { readonly type: 'slow'; readonly process: number; readonly slow: Slowness }
  | { readonly type: 'fault'; readonly process: number; readonly fault: Fault }
  /** Nothing, so that more of what is under way comes before the next. */
  | { readonly type: 'rest'; readonly process: number }
  | { readonly type: 'pass'; readonly process: number; readonly milliseconds: number };

interface Weighted {
  readonly weight: number;
  readonly arbitrary: Arbitrary<Action | Action[]>;
}

const process = fc.nat({ max: 2 });
const key = fc.oneof({ weight: 5, arbitrary: fc.constant('a') }, { weight: 1, arbitrary: fc.constant('b') });

const calls = {
  process,
  key,
  is: fc.constantFrom<CallAction['is'][]>('stored', 'stored', 'stored', 'refused', 'ttl 0', 'short', 'throws'),
  ticks: fc.constantFrom(0, 1, 2, 4, 12),
  wait: fc.constantFrom<CallAction['wait'][]>('long', 'long', 'long', 'throw', 'load'),
  leaves: fc.constantFrom(false, false, false, false, true),
  abortWhenUnused: fc.boolean(),
};
const call = fc.record({ type: fc.constant('call' as const), ...calls });
const crowd = fc.record({ type: fc.constant('crowd' as const), ...calls });

const many = fc.record({ type: fc.constant('many' as const), ...calls });

const onKey = <T extends string>(type: T) => fc.record({ type: fc.constant(type), process, key });
const onProcess = <T extends string>(type: T) => fc.record({ type: fc.constant(type), process });
const pass = (...milliseconds: number[]) =>
  fc.record({
    type: fc.constant('pass' as const),
    process: fc.constant(0),
    milliseconds: fc.constantFrom(...milliseconds),
  });
const slow = fc.record({
  type: fc.constant('slow' as const),
  process,
  slow: fc.record({
    what: fc.constantFrom<Slowness['what'][]>('read', 'lead', 'leaseLeft', 'end', 'renew', 'replace', 'wake-up'),
    run: fc.constantFrom(0, 0, 4),
    answer: fc.constantFrom(0, 6, 12),
  }),
});
const fault = fc.record({
  type: fc.constant('fault' as const),
  process,
  fault: fc.record({
    command: fc.constantFrom<StoreCommand[]>('read', 'lead', 'lead', 'leaseLeft', 'end', 'end', 'renew', 'replace'),
    is: fc.constantFrom<Fault['is'][]>('request lost', 'reply lost', 'late'),
  }),
});

/** What has to be slow for a message to come before the reply of a read, or after it. */
const slowNear = fc.record({
  type: fc.constant('slow' as const),
  process,
  slow: fc.record({
    what: fc.constantFrom<Slowness['what'][]>('change', 'read'),
    run: fc.constant(0),
    answer: fc.constantFrom(2, 4, 8),
  }),
});

/** Enough for a read, a lead and an end, most of the time. */
const REST: readonly Action[] = Array.from({ length: 8 }, () => ({ type: 'rest', process: 0 }));

/** What shows a broken near cache: a value that is kept, or about to be, then a change, whose message may be slow, and calls. */
const changeNear: Arbitrary<Action[]> = fc
  .tuple(
    process,
    call,
    call,
    slowNear,
    fc.constantFrom('evict' as const, 'evict' as const, 'expire' as const, 'set' as const, 'set' as const),
    fc.nat({ max: 1 }),
    fc.constantFrom(false, false, true),
    fc.array(call, { minLength: 2, maxLength: 3 }),
  )
  .map(([there, first, second, slowness, type, apart, resubscribes, later]) => {
    const here = { process: there, key: 'a' };
    const stored = { ...here, is: 'stored', ticks: 0 } as const;
    return [
      { ...first, ...stored },
      ...REST,
      { ...slowness, ...here },
      { ...second, ...stored },
      ...REST,
      { type, process: there + apart, key: 'a' },
      ...(resubscribes ? [{ type: 'resubscribe' as const, ...here }] : []),
      ...later.map((each) => ({ ...each, ...here })),
    ];
  });

/** The same with time that passes, while the value is read and after that, in the place of the change. */
const ageNear: Arbitrary<Action[]> = fc
  .tuple(process, call, call, slowNear, pass(1, 100), pass(100, 400), call)
  .map(([there, first, second, slowness, during, after, later]) => {
    const here = { process: there, key: 'a' };
    const short = { ...here, is: 'short', ticks: 0 } as const;
    return [
      { ...first, ...short },
      ...REST,
      { ...slowness, ...here },
      { ...second, ...short },
      during,
      ...REST,
      after,
      { ...later, ...here },
    ];
  });

/** What shows a broken proof rule: something slow, a call, an eviction by another process, and more calls. */
const story: Arbitrary<Action[]> = fc
  .tuple(slow, fc.oneof(call, crowd), fc.boolean(), fc.array(call, { minLength: 1, maxLength: 3 }))
  .map(([slowness, first, resubscribes, later]) => {
    const here = { process: first.process, key: 'a' };
    return [
      { ...slowness, ...here },
      { ...first, ...here },
      ...(resubscribes ? [{ type: 'resubscribe' as const, ...here }] : []),
      { type: 'evict', process: here.process + 1, key: 'a' },
      ...later.map((each) => ({ ...each, ...here })),
    ];
  });

const common = [
  { weight: 6, arbitrary: slow },
  { weight: 10, arbitrary: call },
  { weight: 3, arbitrary: crowd },
  { weight: 3, arbitrary: many },
  { weight: 5, arbitrary: onKey('evict') },
  { weight: 1, arbitrary: onKey('expire') },
  { weight: 2, arbitrary: onKey('set') },
  { weight: 1, arbitrary: onKey('get') },
  { weight: 2, arbitrary: onProcess('lose wake-ups') },
  { weight: 2, arbitrary: onProcess('resubscribe') },
] as const;

/** Slow, and with lost wake-ups; but no command fails, and no time passes in which a lease or a command could end. */
export const healthy = plan(18, ...common, { weight: 3, arbitrary: pass(1, 100, 400) });

const anything = [
  ...common,
  { weight: 3, arbitrary: pass(1, 100, 501, 1_700, 5_100) },
  { weight: 5, arbitrary: fault },
  { weight: 1, arbitrary: onProcess('crash') },
] as const;

/** Everything that can go wrong. */
export const faulty = plan(18, ...anything);

/** The same, and what near caches are for and may get wrong. */
export const faultyNear = plan(
  10,
  ...anything,
  { weight: 3, arbitrary: slowNear },
  { weight: 5, arbitrary: changeNear },
  { weight: 3, arbitrary: ageNear },
);

/** @param most how many parts it has at most */
function plan(most: number, ...actions: Weighted[]): Arbitrary<Action[]> {
  const part = fc.oneof({ weight: 6, arbitrary: fc.oneof(...actions) }, { weight: 1, arbitrary: story });
  return fc.array(part, { minLength: 4, maxLength: most, size: 'max' }).map((parts) => parts.flat());
}
