import type { Clock, Timer } from './clock.js';
import type { GuardedStore } from './guarded-store.js';
import type { EndReply, EndRequest, LeadRequest, LockKind } from './store.js';

/** What the one who holds a lease is told. */
export interface LeaseWatch {
  /** A renewal is about to be sent; what it returns is called if the renewal is confirmed. */
  renewing?(): () => void;
  /** Another token holds the lock, nobody does, or (only when it is watched) our own count of the lease has run out. */
  lost(how: 'other' | 'gone' | 'expired'): void;
}

/** A renewal that had no reply is tried again after this part of the lease. */
const RETRY = 1 / 9;

/**
 * One attempt's hold on a lock: its token, its lease counted on our own clock from *sending* the command that took or
 * renewed it, its renewal, and its end.
 */
export class Lease {
  readonly token: string;
  readonly #store: GuardedStore;
  readonly #clock: Clock;
  readonly #kind: LockKind;
  readonly #key: string;
  #lease: number;
  #until: number;
  #watch: LeaseWatch | undefined;
  #renewal: Timer | undefined;
  #expiry: Timer | undefined;
  #renews = false;
  #watchesExpiry = false;

  constructor(store: GuardedStore, clock: Clock, { kind, key, token, lease }: LeadRequest, sentAt: number) {
    this.#store = store;
    this.#clock = clock;
    this.#kind = kind;
    this.#key = key;
    this.token = token;
    this.#lease = lease;
    this.#until = sentAt + lease;
  }

  /** Milliseconds left, by our own count. */
  get left(): number {
    return this.#until - this.#clock.now();
  }

  /** Less than a third of the lease is left: too little to begin with. */
  get isNearlyOver(): boolean {
    return this.left < this.#lease / 3;
  }

  /** Tells `watch` when the lease is lost, and renews it every third until it ends, unless `renew` is false. */
  keep(watch: LeaseWatch, { renew = true, watchExpiry = false } = {}): void {
    this.#watch = watch;
    this.#renews = renew;
    this.#watchesExpiry = watchExpiry;
    this.#carryOn();
  }

  /**
   * Renews now.
   *
   * @returns whether it is still ours; the watch is told when it isn't
   * @throws what the store rejects with, when there was no reply
   */
  async renew(lease = this.#lease): Promise<boolean> {
    const sentAt = this.#clock.now();
    const confirmed = this.#watch?.renewing?.();
    const reply = await this.#store.renew({ kind: this.#kind, key: this.#key, token: this.token, lease });
    if (this.#watch === undefined) return reply === 'held';
    if (reply !== 'held') {
      this.#lose(reply);
      return false;
    }
    this.#lease = lease;
    this.#until = sentAt + lease;
    this.#carryOn();
    confirmed?.();
    return true;
  }

  /** Finds out whether it is still ours: a wake-up may have been missed. No reply means nothing. */
  check(): void {
    this.renew().catch(() => {});
  }

  /** Stops renewing and watching, without a word to the store. */
  forget(): void {
    this.#watch = undefined;
    this.#renewal?.clear();
    this.#expiry?.clear();
  }

  /** Ends the lease: writes what there is to write and deletes the lock, in one step, only if it is still ours. */
  end(write: Pick<EndRequest, 'entry' | 'outcome' | 'holdOff'> = {}): Promise<EndReply> {
    this.forget();
    return this.#store.end({ kind: this.#kind, key: this.#key, token: this.token, ...write }, this.#lease);
  }

  /** Held anew: the next renewal is due after a third of it. As long as that is to come, its end needs no timer of its own. */
  #carryOn(): void {
    this.#expiry?.clear();
    if (this.#renews) this.#renewAfter(Math.min(this.#lease / 3, this.left));
    else this.#watchExpiry();
  }

  #renewAfter(delay: number): void {
    this.#renewal?.clear();
    this.#renewal = this.#clock.after(Math.max(0, delay), () => {
      this.#watchExpiry();
      this.renew().catch(() => this.#watch && this.#renewAfter(this.#lease * RETRY));
    });
  }

  #watchExpiry(): void {
    if (!this.#watchesExpiry) return;
    this.#expiry?.clear();
    this.#expiry = this.#clock.after(Math.max(0, this.left), () => this.#lose('expired'));
  }

  #lose(how: 'other' | 'gone' | 'expired'): void {
    const watch = this.#watch;
    this.forget();
    watch?.lost(how);
  }
}
