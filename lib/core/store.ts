/**
 * The seam between the story and where its state lives. A store keeps three things for a key: the value, the lock
 * (token, followers, lease) and the outcome of the last load that wasn't stored. Every method is one atomic step.
 *
 * Each rejects when it is not known to have happened; whoever calls decides what that means. A store sends nothing after
 * `close`.
 */
export interface Store {
  /** Names this process in tokens and wake-ups; new for each store. Letters and digits only. */
  readonly process: string;

  /**
   * Which of the store's servers a key's state lies on, if there are several: one that is away says nothing about the others,
   * so reads go out for each of them alone.
   */
  partOf?(key: string): string;

  /** Begins to connect and to listen. Resolves when the store is ready; rejects when it isn't in time. */
  start(): Promise<void>;

  /**
   * The entries' texts, and the store's time if it is asked for, in one round trip.
   *
   * @param mayLag a replica's answer will do
   */
  read(keys: readonly string[], withTime?: boolean, mayLag?: boolean): Promise<ReadReply>;

  /** Rechecks the entry and, if it is missing, takes the lock; if that is refused, registers this process as follower. */
  lead(request: LeadRequest): Promise<LeadReply>;

  /** Milliseconds until the lock of this key's load ends by itself, if nobody renews it; 0 when nobody holds it. */
  leaseLeft(key: string): Promise<number>;

  /**
   * Ends the lock of this token: stores the entry, deletes the lock and wakes the followers, or is refused. A store that sends
   * it again, since no reply came, sees to it that an entry which the first has stored is no reason to refuse the second.
   */
  end(request: EndRequest): Promise<EndReply>;

  /** Extends the lease of this token to `lease` milliseconds from now. */
  renew(request: RenewRequest): Promise<RenewReply>;

  /** What comes from outside a load: ends the lease and changes the entry; wakes the holder and the followers. */
  replace(request: ReplaceRequest): Promise<void>;

  /**
   * Calls `wake` with a token whose lock has ended, or with `undefined` when wake-ups may have been missed (a new
   * subscription), so that whoever waits looks again. One listener at a time.
   */
  onWake(wake: (token: string | undefined) => void): void;

  /**
   * Tells of each `evict`, `expire` and `set` of any process, from `start` on: what a near cache needs. To be called before
   * that. A store that can't tell doesn't have it.
   */
  onChange?(listener: ChangeListener): void;

  /** Ends every connection and timer. Idempotent. */
  close(): Promise<void>;
}

/** Who wants to know of all changes that come from outside of loads. */
export interface ChangeListener {
  /** The entry of this key was evicted, expired or set. */
  changed(key: string): void;
  /** Every change so far has been told; for so many milliseconds from now, none that is older than that stays untold. */
  listens(trusted: number): void;
  /** From now on changes may be missed. */
  deaf(): void;
}

/** What `read` found. */
export interface ReadReply {
  /** In the order of the keys; `undefined` where there is none, an `Error` where one can't be read. */
  readonly texts: readonly (string | undefined | Error)[];
  /** Milliseconds since the epoch, in the store's own time. */
  readonly now?: number;
}

/** A key's locks: the cache's own, and the lock service's. They never meet. */
export type LockKind = 'cache' | 'lock';

/** Who asks to lead, and what counts as found. */
export interface LeadRequest {
  readonly kind: LockKind;
  readonly key: string;
  /** `process#n`, new for each attempt. A lock that already holds it counts as taken by this request. */
  readonly token: string;
  /** Milliseconds until the lock ends by itself. */
  readonly lease: number;
  /**
   * This process has waited for others' loads, since there was this outcome, or `''` for none: another one is the reply. Be it
   * that of the load that it was refused for, or of one that came after that: a process that can't be woken may be late.
   */
  readonly outcomeSeen?: string | undefined;
  /** An entry's text that could not be decoded: it counts as missing. */
  readonly unreadable?: string | undefined;
  /** Whether to be registered as a follower when refused. */
  readonly follow: boolean;
  /** An entry that is fresh until this very moment counts as stale: it is to be replaced early. */
  readonly refreshing?: number | undefined;
  /** While a stale entry is there, the error of the last load counts as an outcome for whoever asks. */
  readonly heedsError?: boolean;
}

/** What came of asking to lead: an answer that was there, the lock, or the wait for another that has it. */
export type LeadReply =
  | { readonly is: 'hit'; readonly text: string }
  | { readonly is: 'outcome'; readonly text: string }
  | {
      readonly is: 'leading';
      /** The lock service's fencing token: grows with every lock of this key. */
      readonly fencingToken?: number;
    }
  | WaitingReply;

/** Another has the lock. */
export interface WaitingReply {
  readonly is: 'waiting';
  /** Who holds the lock. */
  readonly token: string;
  /** Milliseconds until it ends by itself. */
  readonly leaseLeft: number;
  /** Whether this process will be woken when it ends; otherwise it has to poll. */
  readonly wakes: boolean;
  /** The token of the load whose outcome is there; `''` for none. */
  readonly outcomeSeen: string;
}

/** Whose lock is over, and what is to be left behind. */
export interface EndRequest {
  readonly kind: LockKind;
  readonly key: string;
  readonly token: string;
  /** What to store; without it the lock is only released. */
  readonly entry?: StoredEntry | undefined;
  /** What the load came to, for followers; kept for two seconds, and only if there are any. */
  readonly outcome?: string | undefined;
  /** Milliseconds to keep the outcome, followers or not, if there is a stale entry to be answered meanwhile. */
  readonly holdOff?: number | undefined;
  /**
   * The lock was taken by a claim: a write from outside of a load, which goes the same way as the claim did, and is told to all
   * near caches.
   */
  readonly claimed?: boolean | undefined;
}

/** What is stored, and for how long. */
export interface StoredEntry {
  readonly text: string;
  /** Milliseconds to keep it; `Infinity` for ever. Never 0. */
  readonly px: number;
  /** Milliseconds it is fresh, when that is less than `px`; stamped into the text in the store's own time. */
  readonly freshFor?: number | undefined;
}

/** Whether the lock was still held by that token; if not, nothing was stored. */
export type EndReply =
  | { readonly is: 'held'; readonly stored: boolean /** Why it could not be stored. */; readonly error?: string }
  | { readonly is: 'refused' };

/** Whose lease is to last `lease` milliseconds from now. */
export interface RenewRequest {
  readonly kind: LockKind;
  readonly key: string;
  readonly token: string;
  readonly lease: number;
}

/** `other`: another token holds the lock. `gone`: nobody does. */
export type RenewReply = 'held' | 'other' | 'gone';

/** Which entry changes from outside a load, and how. */
export interface ReplaceRequest {
  readonly key: string;
  /**
   * `evict` deletes the entry, `expire` marks it stale, and `claim` leaves it and takes the lock, whoever holds it, for a
   * write that `end` finishes.
   */
  readonly by: 'evict' | 'expire' | { readonly claim: string; readonly lease: number };
}

/** How long an outcome is there for the followers, in milliseconds. */
export const OUTCOME_KEPT = 2_000;

/** A value stored for less than this, in milliseconds, may be gone before the followers look: they get it as an outcome. */
export const SHORT_LIVED = 1_000;
