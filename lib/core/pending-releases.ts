import type { Clock } from './clock.js';
import { Retries } from './retries.js';
import type { EndReply, EndRequest } from './store.js';

/** A lock that may be held by a token that nobody uses any more. */
export type Release = Pick<EndRequest, 'kind' | 'key' | 'token' | 'claimed'>;

interface Pending {
  readonly release: Release;
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
  readonly #retries: Retries<Pending>;

  constructor(end: (release: Release) => Promise<EndReply>, clock: Clock) {
    this.#retries = new Retries(clock, async (pending) => {
      if ((await end(pending.release)).is === 'held') return true;
      pending.refusals += 1;
      return pending.refusals === REFUSALS;
    });
  }

  add({ kind, key, token, claimed }: Release): void {
    this.#retries.add({ release: { kind, key, token, claimed }, refusals: 0 });
  }

  close(): void {
    this.#retries.close();
  }
}
