import type { Clock } from './clock.js';
import { StoreReplyError } from './errors.js';
import { Retries } from './retries.js';
import type { EndReply, EndRequest, LeadRequest } from './store.js';

/** What releases a lock that may be held by a token that nobody uses any more. */
export type Release = Pick<EndRequest, 'kind' | 'key' | 'token' | 'claimed'>;

/** The same, with the lease that the lock ends by if nothing else does. */
export type LeasedRelease = Release & Pick<LeadRequest, 'lease'>;

interface Pending {
  readonly release: Release;
  /** From then on the lock is gone by itself, unless a server that is frozen takes it later. */
  readonly goneAt: number;
  /** How often the store has answered that this token has no lock. */
  refusals: number;
}

/**
 * So often the store has to say that the token has no lock. Once is not enough: a server that was frozen, or comes after one
 * that failed, may still run what was sent on a connection that is lost by now.
 */
const REFUSALS = 3;

/** Releases that the store did not acknowledge: tried again, so that a lock that nobody uses doesn't stay for its whole lease. */
export class PendingReleases {
  readonly #clock: Clock;
  readonly #retries: Retries<Pending>;

  constructor(end: (release: Release) => Promise<EndReply>, clock: Clock) {
    this.#clock = clock;
    this.#retries = new Retries(clock, async (pending) => {
      try {
        if ((await end(pending.release)).is === 'held') return true;
        pending.refusals += 1;
        return pending.refusals === REFUSALS;
      } catch (error) {
        // Who answers isn't frozen, and may answer so for good: a right may be missing.
        if (error instanceof StoreReplyError && clock.now() >= pending.goneAt) return true;
        throw error;
      }
    });
  }

  add({ lease, kind, key, token, claimed }: LeasedRelease): void {
    const goneAt = this.#clock.now() + lease;
    this.#retries.add({ release: { kind, key, token, claimed }, goneAt, refusals: 0 });
  }

  close(): void {
    this.#retries.close();
  }
}
