import type { Coordination } from './coordination.js';
import type { Duration } from './durations.js';
import {
  CacheClosedError,
  InvalidKeyError,
  InvalidOptionError,
  LockContendedError,
  LockUnavailableError,
} from './errors.js';
import { type Led, lead } from './lead.js';
import type { Lease } from './lease.js';
import { Lock } from './lock.js';
import { checkOptionNames, type OptionNames } from './option-names.js';
import { Patience } from './patience.js';
import { resolvePolicy } from './resolve-load-options.js';
import type { ResolvedPolicy } from './resolved-options.js';
import { Turns } from './turns.js';
import { Waiting } from './waiting.js';

/** How a lock is held. */
export interface TryLockOptions {
  /** How long the lock lives without renewal. Default: the module's `lease`, 5 s. */
  readonly lease?: Duration;
  /** Whether the lease is renewed every third of it until release. Default true. */
  readonly renew?: boolean;
}

/** How a lock is held, and how long it is waited for. */
export interface LockOptions extends TryLockOptions {
  /** How long to wait for a lock that another holds. Default: the module's `wait`, 30 s. `0` tries once. */
  readonly wait?: Duration;
  /** Ends the waiting; `acquire` rejects with its reason. */
  readonly signal?: AbortSignal;
}

const LOCK_OPTION_NAMES: OptionNames<LockOptions> = { lease: true, renew: true, wait: true, signal: true };

interface ResolvedLockOptions {
  readonly lease: number;
  readonly renew: boolean;
  readonly wait: number;
  readonly signal: AbortSignal | undefined;
}

/** Somebody who wants a lock and doesn't have it yet. */
interface Attempt {
  readonly key: string;
  readonly outcome: Promise<Lock>;
}

/**
 * Locks across processes. Where the cache prefers an answer to exclusion, this prefers exclusion: without the store's word
 * nothing is locked, and nothing runs.
 */
export class LockService {
  readonly #coordination: Coordination;
  readonly #policy: ResolvedPolicy;
  /** Of one process one asks the store at a time, however many wait. */
  readonly #turns = new Turns();
  readonly #held = new Set<Lock>();
  readonly #attempts = new Map<Patience, Attempt>();
  /** What the store has not answered yet: who has the turn may be about to learn that the store is away. */
  readonly #asking = new Map<string, Promise<Led>>();
  #closed = false;

  /** @internal The module, or `createStampede`, makes it. */
  constructor(coordination: Coordination, policy: ResolvedPolicy) {
    this.#coordination = coordination;
    this.#policy = policy;
  }

  /**
   * Takes the lock, waiting for it if another has it. Those who wait in one process are served in the order in which they
   * came; between processes there is no order.
   *
   * @throws LockContendedError when it was not free for the whole `wait`
   * @throws LockUnavailableError when the store does not answer
   * @throws the signal's reason when it aborts
   * @throws InvalidKeyError, InvalidOptionError for a key or an option that can't be one
   */
  async acquire(key: string, options: LockOptions = {}): Promise<Lock> {
    const resolved = this.#resolve(options);
    if (typeof key !== 'string' || key === '') throw new InvalidKeyError(key);
    return this.#acquire(key, resolved);
  }

  /**
   * Takes the lock if it is free.
   *
   * @returns the lock, or `undefined` when another has it
   * @throws LockUnavailableError when the store does not answer
   */
  async tryAcquire(key: string, options: TryLockOptions = {}): Promise<Lock | undefined> {
    try {
      return await this.acquire(key, { ...options, wait: 0 });
    } catch (error) {
      if (error instanceof LockContendedError) return undefined;
      throw error;
    }
  }

  /**
   * Runs `run` while holding the lock, and releases it whatever comes of that.
   *
   * @returns what `run` returns, also when the lock was lost meanwhile: watch `lock.signal`
   * @throws what `run` throws, and what `acquire` throws
   * @example await locks.withLock('invoice:7', {}, async (lock) => send(invoice, lock.fencingToken));
   */
  async withLock<T>(key: string, options: LockOptions, run: (lock: Lock) => T | PromiseLike<T>): Promise<T> {
    if (typeof run !== 'function')
      throw new InvalidOptionError('run', run, 'a function, after the key and the options');
    const lock = await this.acquire(key, options);
    try {
      return await run(lock);
    } finally {
      await lock.release();
    }
  }

  /** @internal Ends all waiting, and releases what is still held. */
  async close(): Promise<void> {
    this.#closed = true;
    const attempts = [...this.#attempts];
    for (const [patience, { key }] of attempts) patience.abort(closedError(key));
    await Promise.allSettled(attempts.map(([, { outcome }]) => outcome));
    await Promise.all([...this.#held].map((lock) => lock.close()));
  }

  async #acquire(key: string, options: ResolvedLockOptions): Promise<Lock> {
    const { wait, signal } = options;
    signal?.throwIfAborted();
    if (wait === 0 && this.#turns.isTaken(key)) {
      await this.#untilAnswered(key, signal);
      signal?.throwIfAborted();
      if (this.#turns.isTaken(key)) throw new LockContendedError(key, 0);
    }
    if (this.#closed) throw closedError(key);
    const patience = new Patience(this.#coordination.clock, wait, signal);
    const outcome = this.#attempt(key, options, patience);
    this.#attempts.set(patience, { key, outcome });
    try {
      return await outcome;
    } finally {
      patience.stop();
      this.#attempts.delete(patience);
    }
  }

  /**
   * For one that doesn't wait: who has the turn may be about to learn that the store is away, and that is no contention.
   *
   * @throws LockUnavailableError then
   */
  async #untilAnswered(key: string, signal: AbortSignal | undefined): Promise<void> {
    const patience = new Patience(this.#coordination.clock, Infinity, signal);
    try {
      await Promise.race([this.#asking.get(key), patience.ended]);
    } finally {
      patience.stop();
    }
  }

  async #attempt(key: string, { lease, renew }: ResolvedLockOptions, patience: Patience): Promise<Lock> {
    const turn = this.#turns.take(key);
    try {
      if (!turn.hasCome) {
        await Promise.race([turn.untilItComes(), patience.ended]);
        patience.throwIfAborted();
        // Of many whose time is over at once, each gets a turn for a moment, and need not ask the store.
        if (!turn.hasCome || patience.isOver) throw new LockContendedError(key, patience.waited);
      }
      const { fencingToken, ...led } = await this.#contend(key, lease, patience);
      const over = () => {
        this.#held.delete(lock);
        turn.pass();
      };
      const lock = new Lock(key, fencingToken, led.lease, this.#coordination, { renew, over });
      this.#held.add(lock);
      const { events } = this.#coordination;
      if (events.observed) events.emit({ type: 'lock-acquired', key, waited: patience.waited, fencingToken });
      return lock;
    } catch (error) {
      turn.pass();
      throw error;
    }
  }

  /** Lead, or wait and lead again, as long as there is patience. The first try needs none. */
  async #contend(
    key: string,
    milliseconds: number,
    patience: Patience,
  ): Promise<{ lease: Lease; fencingToken: number }> {
    let waiting: Waiting | undefined;
    for (;;) {
      const { reply, lease, watch } = await this.#lead(key, milliseconds);
      try {
        if (reply.is === 'leading') {
          if (!lease.isNearlyOver && !patience.wasAborted) return { lease, fencingToken: reply.fencingToken ?? 0 };
          await lease.end().catch(() => {});
        }
        if (reply.is === 'waiting' && !patience.isOver) {
          waiting ??= this.#wait(patience);
          await waiting.sleep(reply, watch);
        }
      } finally {
        watch.stop();
      }
      patience.throwIfAborted();
      if (patience.isOver) throw new LockContendedError(key, patience.waited);
    }
  }

  #wait(patience: Patience): Waiting {
    const waiting = new Waiting(this.#coordination.clock, this.#coordination.random);
    void patience.ended.then(() => waiting.stir());
    return waiting;
  }

  async #lead(key: string, lease: number): Promise<Led> {
    const token = this.#coordination.newToken();
    const led = lead(this.#coordination, { kind: 'lock', key, token, lease, follow: true }).catch((cause) => {
      throw new LockUnavailableError(key, { cause });
    });
    this.#asking.set(key, led);
    try {
      return await led;
    } finally {
      this.#asking.delete(key);
    }
  }

  #resolve(options: LockOptions): ResolvedLockOptions {
    if (typeof options !== 'object' || options === null) {
      throw new InvalidOptionError('options', options, "an object, such as { wait: '10s' }");
    }
    checkOptionNames(options, LOCK_OPTION_NAMES, 'acquire');
    const { lease, renew, wait, signal } = options;
    if (renew !== undefined && typeof renew !== 'boolean')
      throw new InvalidOptionError('renew', renew, 'true or false');
    if (signal !== undefined && !(signal instanceof AbortSignal)) {
      throw new InvalidOptionError('signal', signal, 'an AbortSignal');
    }
    const policy =
      lease === undefined && wait === undefined
        ? this.#policy
        : resolvePolicy({ ...(lease !== undefined && { lease }), ...(wait !== undefined && { wait }) }, this.#policy);
    return { lease: policy.lease, wait: policy.wait, renew: renew ?? true, signal };
  }
}

function closedError(key: string): LockUnavailableError {
  return new LockUnavailableError(key, { cause: new CacheClosedError() });
}
