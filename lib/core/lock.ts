import type { Coordination } from './coordination.js';
import type { Duration } from './durations.js';
import { LockLostError, LockUnavailableError } from './errors.js';
import { LazySignal } from './lazy-signal.js';
import type { Lease } from './lease.js';
import { resolvePolicy } from './resolve-load-options.js';

/**
 * A lock that is held: until `release`, or until its lease is lost, of which `signal` tells. Renewed by itself, unless that
 * was turned off.
 *
 * A lock can be lost while its holder believes in it (a frozen process, a failed-over Redis), so what it guards outside
 * Redis should take only writes whose `fencingToken` is not lower than the last one it saw.
 *
 * @example
 * await using lock = await locks.acquire('report');
 * await writeReport({ fencingToken: lock.fencingToken, signal: lock.signal });
 */
export class Lock implements AsyncDisposable {
  readonly key: string;
  /** Names this attempt; no other lock ever has the same. */
  readonly token: string;
  /** Grows with every lock of this key; an integer below 2^53. */
  readonly fencingToken: number;
  readonly #coordination: Coordination;
  readonly #lease: Lease;
  readonly #lost = new LazySignal();
  readonly #acquiredAt: number;
  readonly #over: () => void;
  #released: Promise<boolean> | undefined;

  /** @internal Locks come from `LockService`. `over` is called once, when it is released or lost. */
  constructor(
    key: string,
    fencingToken: number,
    lease: Lease,
    coordination: Coordination,
    { renew, over }: { readonly renew: boolean; readonly over: () => void },
  ) {
    this.key = key;
    this.token = lease.token;
    this.fencingToken = fencingToken;
    this.#lease = lease;
    this.#coordination = coordination;
    this.#acquiredAt = coordination.clock.now();
    this.#over = over;
    const lost = () => this.#lose();
    lease.keep({ lost }, { renew, watchExpiry: true });
  }

  /** Aborts, with a `LockLostError`, when the lock is lost: its lease ended without a renewal, or another took it. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** When the lease ends unless it is renewed, in milliseconds since the epoch by this host's clock: to show, not to rely on. */
  get expiresAt(): number {
    return Date.now() + this.#lease.left;
  }

  /**
   * Renews the lease now.
   *
   * @param lease how long from now, at least 100 ms; as before if left out
   * @throws InvalidOptionError when that is no such duration
   * @throws LockLostError when it isn't ours any more
   * @throws LockUnavailableError when the store did not answer; the lock is held until its lease ends
   */
  async extend(lease?: Duration): Promise<void> {
    const milliseconds = lease === undefined ? undefined : resolvePolicy({ lease }).lease;
    if (this.#lost.isAborted || this.#released) throw new LockLostError(this.key);
    let held: boolean;
    try {
      held = await this.#lease.renew(milliseconds);
    } catch (cause) {
      throw new LockUnavailableError(this.key, { cause });
    }
    if (!held || this.#lost.isAborted) throw new LockLostError(this.key);
  }

  /**
   * Releases the lock. Never throws, so that it can't hide what happened before.
   *
   * @returns whether it was still ours until now; false also when the store did not answer; it is then
   *   tried again until it does, or the lease ends it
   */
  release(): Promise<boolean> {
    this.#released ??= this.#release();
    return this.#released;
  }

  /** @internal Releases it under the hands of whoever still uses it, who is told that it is lost. */
  async close(): Promise<void> {
    this.#lose();
    await this.release();
  }

  /** Releases it, at the end of the block that has it by `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  async #release(): Promise<boolean> {
    const { clock, events } = this.#coordination;
    const wasLost = this.#lost.isAborted;
    try {
      const end = await this.#lease.end();
      if (end.is === 'refused') {
        if (!wasLost && events.observed) events.emit({ type: 'lock-lost', key: this.key });
        return false;
      }
      if (events.observed) events.emit({ type: 'lock-released', key: this.key, held: clock.now() - this.#acquiredAt });
      return true;
    } catch {
      return false;
    } finally {
      this.#over();
    }
  }

  #lose(): void {
    const { events } = this.#coordination;
    this.#lost.abort(new LockLostError(this.key));
    if (events.observed) events.emit({ type: 'lock-lost', key: this.key });
    this.#over();
  }
}
