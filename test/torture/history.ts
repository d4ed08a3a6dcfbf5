/**
 * What a torture run writes down, and what `check.ts` reads. All times are milliseconds of the machine's monotonic clock,
 * which is the same in all its processes.
 */
import type { LoadProfile, LockProfile } from './workload.js';

export interface History {
  readonly seed: number;
  readonly topology: 'standalone' | 'sentinel';
  readonly commandTimeout: number;
  readonly from: number;
  /** When the last call had been answered. */
  readonly until: number;
  readonly profiles: readonly LoadProfile[];
  readonly lockProfiles: readonly LockProfile[];
  readonly faults: readonly Fault[];
  readonly processes: readonly ProcessLife[];
  readonly calls: readonly Call[];
  readonly loads: readonly Load[];
  readonly writes: readonly Write[];
  readonly holds: readonly Hold[];
  readonly refusals: readonly Refusal[];
  readonly probes: readonly Probe[];
  readonly sightings: readonly Sighting[];
  readonly measurements: readonly Measurement[];
  /** Unhandled rejections, warnings, processes that ended by themselves. */
  readonly accidents: readonly Accident[];
}

interface Interval {
  readonly from: number;
  readonly until: number;
}

/** What the director did, and what the machine did to it. */
export interface Fault extends Interval {
  readonly is: /** Nothing answers: frozen, dead, starting again, or a failover. */
    | 'redis away'
    /** The way to Redis of one process is closed; its connections stay open. */
    | 'blackhole'
    /** That way is slow, but well within the deadline. */
    | 'delay'
    /** Its connections were cut; new ones pass. */
    | 'cut'
    /** It was stopped and continued. */
    | 'freeze'
    /** Its event loop stood still, by its own count: the machine is busy. */
    | 'stall'
    /** A command of its own had no reply for half the deadline: the machine is busy, and others may have had none at all. */
    | 'slow'
    /** Scripts were flushed: everything goes on. */
    | 'script flush'
    /** The server answered a renewal with an error: the lease goes on, and it is tried again. */
    | 'renewal failed'
    /** The locks' keys were deleted. */
    | 'locks dropped';
  /** What exactly, for people. */
  readonly what: string;
  /** Whom it concerned; everybody if it is left out. */
  readonly process?: string | undefined;
  /** Redis came back without what it had (`locks`), or perhaps with what it had before a write it acknowledged (`writes`). */
  readonly lost?: 'locks' | 'locks and writes' | undefined;
}

export interface ProcessLife {
  readonly process: string;
  /** The store's name of it: the first part of its tokens. */
  readonly store: string;
  readonly from: number;
  readonly until: number;
  readonly end: 'killed' | 'left' | 'stayed';
}

/** One call of `getOrLoad`. */
export interface Call {
  readonly process: string;
  readonly key: string;
  readonly profile: string;
  /** Which of the profile's variants of options. */
  readonly variant: number;
  readonly from: number;
  /** `undefined`: never answered. */
  readonly until: number | undefined;
  /** Which load or `set` made the value that it got. */
  readonly got?: string | undefined;
  readonly error?: { readonly name: string; readonly code?: string | undefined; readonly message: string } | undefined;
}

/** One run of a loader. */
export interface Load {
  readonly id: string;
  readonly process: string;
  readonly key: string;
  readonly profile: string;
  /** Of the call whose loader it is. */
  readonly variant: number;
  readonly callFrom: number;
  readonly from: number;
  /** When it ended; `undefined` if it died with its process. */
  readonly until: number | undefined;
  readonly came: 'value' | 'error' | undefined;
  /** When its signal aborted. */
  readonly abortedAt: number | undefined;
  /** The source's version when it began. */
  readonly version: number;
}

/** One `evict`, `expire` or `set`. The source counted up before. */
export interface Write {
  readonly id: string;
  readonly process: string;
  readonly key: string;
  readonly by: 'evict' | 'expire' | 'set';
  readonly from: number;
  /** `undefined` if its process died. */
  readonly until: number | undefined;
  readonly acknowledged: boolean;
  readonly error?: string | undefined;
  readonly version: number;
}

/** A lock of the lock service, as its holder saw it. */
export interface Hold {
  readonly id: string;
  readonly process: string;
  readonly key: string;
  readonly profile: string;
  readonly token: string;
  readonly fencingToken: number;
  readonly askedAt: number;
  readonly from: number;
  /** When it was told that it had lost it. */
  readonly lostAt: number | undefined;
  /** When it released it. */
  readonly releasedAt: number | undefined;
  /** When the release was over, and what it said: whether it was still ours. */
  readonly until: number | undefined;
  readonly wasOurs: boolean | undefined;
  /** `extend` said that it is held, at these times. */
  readonly extendedAt: readonly number[];
}

/** A lock that somebody didn't get. */
export interface Refusal extends Interval {
  readonly process: string;
  readonly key: string;
  readonly profile: string;
  readonly error: string;
}

/** Two reads of a new key, some time after Redis came back. */
export interface Probe extends Interval {
  readonly process: string;
  readonly after: string;
  /** When what was wrong was over. */
  readonly over: number;
  readonly hit: boolean;
}

/** A lock that lay in Redis. */
export interface Sighting {
  readonly at: number;
  readonly kind: 'cache' | 'lock';
  readonly key: string;
  readonly token: string;
}

/** What a process had before and after. */
export interface Measurement {
  readonly process: string;
  readonly before: Usage;
  readonly after: Usage;
  /** When its caches were closed. */
  readonly closed: Usage;
  /** Of one signal that was given to many calls. */
  readonly signalListeners: number;
}

export interface Usage {
  /** By type, such as `TCPSocketWrap`. */
  readonly resources: Readonly<Record<string, number>>;
  readonly heap: number;
}

export interface Accident {
  readonly process: string;
  readonly at: number;
  readonly what: string;
}
