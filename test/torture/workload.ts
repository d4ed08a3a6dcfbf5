/** What the processes do: kinds of keys, how they are asked for, written and locked. Plain data, sent to each process. */
import type { LoadOptions, LockOptions } from 'nestjs-stampede-cache';

type Range = readonly [least: number, most: number];

/** The process that is further away from Redis, or each of the others. */
export type Where = 'far' | 'near';

type Options = Partial<Omit<LoadOptions, 'ttl' | 'cacheIf' | 'signal' | 'codec'>>;

export interface LoadProfile {
  readonly name: string;
  readonly keys: number;
  /** Each call has a key of its own. */
  readonly lone?: boolean;
  readonly ttl: number;
  /** `cacheIf` says no. */
  readonly refuse?: boolean;
  readonly options: Options & { readonly wait: number; readonly maxLoad: number; readonly lease: number };
  /** Each call takes one of these on top. */
  readonly variants: readonly Options[];
  /** How long a loader takes, in milliseconds, how often it fails, how often it ignores its signal. */
  readonly takes: Range;
  readonly fails?: number;
  readonly deaf?: number;
  /** After so many milliseconds the caller gives up, by its signal. */
  readonly givesUp?: Range;
  /** How many ask at once in each process, and how long each pauses between two questions. */
  readonly callers: number;
  readonly pause: Range;
  /**
   * Calls that don't wait for the one before, so many milliseconds apart on the average: so there are some who join while a
   * reply is on its way.
   */
  readonly stream?: { readonly every: number; readonly from?: Where };
  /** Milliseconds between two of these, over all processes, on the average. */
  readonly evictEvery?: number;
  readonly expireEvery?: number;
  readonly setEvery?: number;
  readonly writesFrom?: Where;
  /** So many milliseconds after each write comes another, whether the first is over or not. */
  readonly again?: Range;
}

export interface LockProfile {
  readonly name: string;
  readonly options: Omit<LockOptions, 'signal'> & { readonly wait: number; readonly lease: number };
  readonly holds: Range;
  /** How often it is extended by hand, and only tried. */
  readonly extends?: number;
  readonly tries?: number;
  readonly callers: number;
  readonly pause: Range;
}

/** Loads of which the director makes a renewal be lost. */
export const MANY_RENEWALS = 'endless';

const PATIENT = { wait: 14_000, maxLoad: 12_000, lease: 5_000 } as const;

export const PROFILES: readonly LoadProfile[] = [
  {
    name: 'plain',
    keys: 2,
    ttl: 60_000,
    options: PATIENT,
    variants: [{}],
    takes: [10, 80],
    callers: 2,
    pause: [2, 20],
    evictEvery: 500,
  },
  // So seldom that an eviction that was lost is not made good by the next.
  {
    name: 'seldom evicted',
    keys: 2,
    ttl: 60_000,
    options: PATIENT,
    variants: [{}],
    takes: [10, 60],
    callers: 1,
    pause: [20, 80],
    evictEvery: 2_000,
  },
  // Evicted again and again, also between a command and its reply.
  {
    name: 'hounded',
    keys: 1,
    ttl: 60_000,
    options: PATIENT,
    variants: [{}],
    takes: [2, 15],
    callers: 2,
    pause: [2, 20],
    stream: { every: 5, from: 'far' },
    evictEvery: 60,
  },
  // Loaded only far away, and evicted from nearby: while `end` is on its way back, too.
  {
    name: 'far',
    keys: 1,
    ttl: 60_000,
    options: PATIENT,
    variants: [{}],
    takes: [5, 30],
    callers: 0,
    pause: [5, 20],
    stream: { every: 5, from: 'far' },
    evictEvery: 120,
    writesFrom: 'near',
  },
  // Nobody but the ttl ends its entries: loads overlap for no reason.
  {
    name: 'brief',
    keys: 2,
    ttl: 250,
    options: PATIENT,
    variants: [{}],
    takes: [20, 60],
    callers: 1,
    pause: [5, 25],
  },
  {
    name: 'long',
    keys: 1,
    ttl: 600,
    options: { ...PATIENT, lease: 1_000 },
    variants: [{}],
    takes: [1_200, 2_200],
    callers: 1,
    pause: [20, 80],
  },
  {
    name: 'long evicted',
    keys: 2,
    ttl: 60_000,
    options: { ...PATIENT, lease: 1_000 },
    variants: [{}],
    takes: [500, 1_500],
    callers: 1,
    pause: [10, 60],
    stream: { every: 25 },
    evictEvery: 1_200,
  },
  {
    name: 'failing',
    keys: 1,
    ttl: 300,
    options: PATIENT,
    variants: [{}, { shareErrors: false }],
    takes: [30, 120],
    fails: 0.5,
    callers: 2,
    pause: [20, 80],
  },
  {
    name: 'windows',
    keys: 2,
    ttl: 150,
    options: PATIENT,
    variants: [
      {},
      { staleWhileRevalidate: 1_000 },
      { staleWhileRevalidate: 100, staleIfError: 5_000, errorHoldOff: 100 },
      { staleIfError: 5_000, errorHoldOff: 0 },
      { staleIfError: 5_000, softTimeout: 30 },
      { earlyRefresh: 3 },
    ],
    takes: [30, 100],
    fails: 0.2,
    callers: 2,
    pause: [10, 60],
    evictEvery: 700,
    expireEvery: 3_000,
  },
  // So seldom without an error that its values get old, for those who may have them.
  {
    name: 'mostly failing',
    keys: 1,
    ttl: 100,
    options: PATIENT,
    variants: [{}, { staleIfError: 10_000, errorHoldOff: 0 }],
    takes: [30, 100],
    fails: 0.9,
    callers: 1,
    pause: [10, 60],
  },
  {
    name: 'deaf',
    keys: 1,
    ttl: 300,
    options: { ...PATIENT, maxLoad: 400, lease: 1_000 },
    variants: [{}],
    takes: [100, 700],
    deaf: 0.5,
    callers: 1,
    pause: [20, 80],
  },
  // Never stored: what a load came to travels as an outcome.
  {
    name: 'refused',
    keys: 1,
    ttl: 60_000,
    refuse: true,
    options: PATIENT,
    variants: [{}],
    takes: [600, 800],
    callers: 2,
    pause: [50, 250],
  },
  {
    name: 'refused evicted',
    keys: 1,
    ttl: 60_000,
    refuse: true,
    options: PATIENT,
    variants: [{}],
    takes: [20, 80],
    callers: 2,
    pause: [5, 30],
    stream: { every: 5, from: 'far' },
    evictEvery: 250,
  },
  // So long that a lease ends meanwhile of which one renewal was lost, if that was the last.
  {
    name: MANY_RENEWALS,
    keys: 3,
    ttl: 500,
    options: { ...PATIENT, wait: 20_000, maxLoad: 16_000, lease: 3_000 },
    variants: [{}],
    takes: [8_000, 12_000],
    callers: 1,
    pause: [50, 200],
  },
  // Always locked by somebody; and a lock that is left behind is there for so long that it is seen when all works again.
  {
    name: 'locked',
    keys: 3,
    ttl: 50,
    options: { wait: 26_000, maxLoad: 12_000, lease: 10_000 },
    variants: [{}],
    takes: [100, 400],
    callers: 1,
    pause: [10, 60],
  },
  // When its lock is gone without a word, who waits looks by itself, long before its wait is over.
  {
    name: 'orphaned',
    keys: 3,
    ttl: 600,
    options: { wait: 5_000, maxLoad: 3_000, lease: 1_000 },
    variants: [{}],
    takes: [400, 800],
    callers: 1,
    pause: [10, 60],
  },
  {
    name: 'hasty',
    keys: 1,
    ttl: 300,
    options: { ...PATIENT, wait: 300 },
    variants: [{}],
    // Some so long that it is seen who waited for them.
    takes: [500, 5_000],
    callers: 1,
    pause: [50, 200],
  },
  {
    name: 'given up',
    keys: 1,
    ttl: 200,
    options: { ...PATIENT, abortWhenUnused: true },
    variants: [{}],
    takes: [200, 600],
    givesUp: [50, 400],
    callers: 1,
    pause: [100, 400],
  },
  {
    name: 'impatient',
    keys: 1,
    ttl: 400,
    options: { ...PATIENT, wait: 200, onWaitTimeout: 'load' },
    variants: [{}],
    takes: [100, 500],
    callers: 1,
    pause: [20, 100],
  },
  {
    name: 'written',
    keys: 1,
    ttl: 60_000,
    options: PATIENT,
    variants: [{}],
    takes: [20, 200],
    callers: 2,
    pause: [5, 40],
    setEvery: 350,
    evictEvery: 700,
  },
  // Seldom enough for a lock that is left behind to be seen.
  {
    name: 'set',
    keys: 2,
    ttl: 60_000,
    options: PATIENT,
    variants: [{}],
    takes: [20, 100],
    callers: 1,
    pause: [50, 200],
    setEvery: 3_000,
  },
  // Two from far away: the second begins between the two steps of the first, and ends when that has been acknowledged.
  {
    name: 'set twice',
    keys: 1,
    ttl: 60_000,
    options: PATIENT,
    variants: [{}],
    takes: [5, 20],
    callers: 1,
    pause: [2, 8],
    setEvery: 300,
    writesFrom: 'far',
    again: [10, 120],
  },
  {
    name: 'expired',
    keys: 1,
    ttl: 60_000,
    options: PATIENT,
    variants: [{}, { staleWhileRevalidate: 2_000 }],
    takes: [20, 120],
    callers: 2,
    pause: [10, 60],
    expireEvery: 600,
  },
  {
    name: 'lone',
    keys: 1,
    lone: true,
    ttl: 1_000,
    options: PATIENT,
    variants: [{}],
    takes: [5, 20],
    callers: 2,
    pause: [30, 120],
  },
];

/** The lock of which the director makes an acquire or a release be lost. */
export const MOSTLY_FREE = 'mostly free';

export const LOCK_PROFILES: readonly LockProfile[] = [
  { name: 'short', options: { wait: 2_000, lease: 5_000 }, holds: [5, 40], tries: 0.2, callers: 2, pause: [10, 80] },
  {
    name: 'renewed',
    options: { wait: 4_000, lease: 1_000 },
    holds: [100, 2_200],
    extends: 0.3,
    callers: 1,
    pause: [10, 100],
  },
  {
    name: 'not renewed',
    options: { wait: 2_000, lease: 300, renew: false },
    holds: [50, 800],
    callers: 1,
    pause: [20, 100],
  },
  // So long that who lost it and is not told goes on believing in it.
  { name: 'held', options: { wait: 10_000, lease: 2_400 }, holds: [3_000, 7_000], callers: 1, pause: [10, 100] },
  // Locks that are left behind are there for so long that they are seen when all works again.
  { name: 'lasting', options: { wait: 2_000, lease: 7_000 }, holds: [5, 60], tries: 0.3, callers: 1, pause: [10, 80] },
  { name: MOSTLY_FREE, options: { wait: 6_000, lease: 7_000 }, holds: [5, 40], callers: 1, pause: [300, 1_200] },
];

export function keysOf({ name, keys }: LoadProfile): string[] {
  return Array.from({ length: keys }, (_, i) => `${name}-${i}`);
}
