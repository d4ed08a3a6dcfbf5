import type { Caller } from './caller.js';
import type { Events } from './events.js';
import type { Lease } from './lease.js';
import { Load } from './load.js';
import type { Tower } from './tower.js';
import type { TokenWatch } from './wake-ups.js';

/** A load that is under way, and the lease it runs under; without one, the store is away. */
export class Running {
  readonly load: Load;
  /** Whose loader it is. */
  readonly owner: Caller;
  readonly lease: Lease | undefined;
  /** How many callers may get the value even if the lease should turn out to have ended. */
  proven: number;
  leaseEnded = false;
  readonly #key: string;
  readonly #events: Events;

  constructor(key: string, owner: Caller, lease: Lease | undefined, proven: number, tower: Tower) {
    const { clock, events, loadLimit } = tower;
    this.#key = key;
    this.#events = events;
    this.owner = owner;
    this.lease = lease;
    this.proven = proven;
    if (events.observed) events.emit({ type: 'load', key, alone: lease === undefined, background: owner.isBackground });
    this.load = new Load(key, owner, clock, loadLimit);
  }

  /**
   * Keeps the lease while the load runs, and listens for its end.
   *
   * @param joined how many callers have joined by now; a renewal that is confirmed proves those who had when it was sent
   * @param leaseEnded the lock was taken from this load, which goes on
   */
  keepLease(watch: TokenWatch, joined: () => number, leaseEnded: () => void): void {
    const { lease } = this;
    const renewing = () => {
      const joinedBefore = joined();
      return () => {
        this.proven = joinedBefore;
      };
    };
    const lost = (how: 'other' | 'gone' | 'expired') => {
      const holder = how === 'other' ? 'other' : 'gone';
      if (this.#events.observed) this.#events.emit({ type: 'lease-lost', key: this.#key, holder });
      if (holder === 'other') this.load.abort('lost');
      else leaseEnded();
    };
    lease?.keep({ renewing, lost });
    watch.listen((certain) => {
      if (certain) leaseEnded();
      else lease?.check();
    });
  }
}
