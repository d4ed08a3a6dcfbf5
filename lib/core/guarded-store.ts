import { CircuitBreaker } from './circuit-breaker.js';
import type { Clock } from './clock.js';
import { CommandTimeoutError, EvictionPendingError, InvalidOptionError, StoreReplyError } from './errors.js';
import type { Events, StoreCommand } from './events.js';
import { type Eviction, PendingEvictions } from './pending-evictions.js';
import { type LeasedRelease, PendingReleases } from './pending-releases.js';
import type {
  ChangeListener,
  EndReply,
  EndRequest,
  LeadReply,
  LeadRequest,
  ReadReply,
  RenewReply,
  RenewRequest,
  ReplaceRequest,
  Store,
} from './store.js';
import type { Trouble } from './trouble.js';

/** After so many failures in a row the store is left alone for so many milliseconds; then one command tries. */
const FAILURES = 3;
const LEFT_ALONE = 500;
/** The part of `commandTimeout` that a look at another's lock may take. */
const LOOK_DEADLINE = 0.6;

/** What else a command needs. */
interface Guard<T> {
  /** Milliseconds; `commandTimeout` if left out. */
  readonly deadline?: number;
  /** For what can be done without: it is not sent to a server that fails again and again. */
  readonly breaker?: CircuitBreaker | undefined;
  /** Called when it has failed, with the reply that may still come. */
  readonly failed?: (error: unknown, reply: Promise<T> | undefined) => void;
}

export interface GuardOptions {
  /** Milliseconds. */
  readonly commandTimeout: number;
  readonly retryEvictions: boolean;
}

/**
 * The store as the story sees it: every command settles within `commandTimeout`, whatever the client does; a store that does
 * not answer is left alone for a while; no lock is left behind by a command whose reply didn't come; and nothing is read
 * before the evictions that failed are made up for.
 */
export class GuardedStore {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #events: Events;
  readonly #trouble: Trouble;
  readonly #options: GuardOptions;
  /** One for each of the store's servers. */
  readonly #breakers = new Map<string, CircuitBreaker>();
  readonly #pending: PendingEvictions;
  readonly #releases: PendingReleases;

  constructor(store: Store, clock: Clock, events: Events, trouble: Trouble, options: GuardOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#events = events;
    this.#trouble = trouble;
    this.#options = options;
    this.#pending = new PendingEvictions((key, by) => this.#replace({ key, by }), clock, events);
    this.#releases = new PendingReleases((release) => this.#inTime('end', () => store.end(release)), clock);
  }

  get process(): string {
    return this.#store.process;
  }

  onChange(listener: ChangeListener): void {
    if (!this.#store.onChange) throw new InvalidOptionError('near', 'given', 'false: the store tells of no changes');
    this.#store.onChange(listener);
  }

  /** @throws what the store rejects with when it isn't ready in time; it goes on trying */
  async start(): Promise<void> {
    try {
      await this.#store.start();
    } catch (error) {
      this.#trouble.failed('start', error);
      throw error;
    }
  }

  /** Which of the store's servers a key lies on. */
  partOf(key: string): string {
    return this.#store.partOf?.(key) ?? '';
  }

  /**
   * Keys of one of the store's servers. One whose eviction is still to be made up for has an `EvictionPendingError` in the
   * place of its text.
   */
  read(keys: readonly string[], withTime: boolean, mayLag = false): Promise<ReadReply> {
    const trusted = this.#pending.isEmpty ? keys : keys.filter((key) => !this.#pending.of(key));
    // To ask for nothing would not be sent, and tell nothing about how the store fares.
    const [first] = trusted;
    if (first === undefined) return Promise.resolve({ texts: keys.map((key) => new EvictionPendingError(key)) });
    const read = this.#inTime('read', () => this.#store.read(trusted, withTime, mayLag), {
      breaker: this.#breakerOf(first),
    });
    return trusted.length === keys.length ? read : read.then((reply) => amongAll(keys, trusted, reply));
  }

  lead(request: LeadRequest): Promise<LeadReply> {
    const { kind, key } = request;
    if (kind === 'cache' && this.#pending.of(key)) return Promise.reject(new EvictionPendingError(key));
    return this.#orRelease(
      request,
      'lead',
      () => this.#store.lead(request),
      ({ is }) => is === 'leading',
      kind === 'cache' ? this.#breakerOf(key) : undefined,
    );
  }

  /** Who waits asks this again and again, so that it notices soon that the store is away: its deadline is shorter. */
  leaseLeft(key: string): Promise<number> {
    return this.#inTime('leaseLeft', () => this.#store.leaseLeft(key), {
      breaker: this.#breakerOf(key),
      deadline: this.#options.commandTimeout * LOOK_DEADLINE,
    });
  }

  /**
   * One that isn't acknowledged is made up for: without what it was to store, which nobody may know of by then.
   *
   * @param lease of the lock that is to end
   */
  end(request: EndRequest, lease: number): Promise<EndReply> {
    const failed = () => this.#releases.add({ ...request, lease });
    return this.#inTime('end', () => this.#store.end(request), { failed });
  }

  renew(request: RenewRequest): Promise<RenewReply> {
    return this.#inTime('renew', () => this.#store.renew(request));
  }

  /** Takes the lock for a write that `end` finishes: as `lead` does, and released like it. */
  claim(key: string, token: string, lease: number): Promise<void> {
    const by = { claim: token, lease };
    return this.#orRelease(
      { kind: 'cache', key, token, lease, claimed: true },
      'replace',
      () => this.#store.replace({ key, by }),
      () => true,
    );
  }

  /** What fails is made up for before anything is read again, and also fails here. */
  async evict(key: string, by: Eviction): Promise<void> {
    const pending = this.#pending.of(key);
    try {
      await this.#replace({ key, by: this.#pending.including(key, by) });
      this.#pending.madeUpFor(pending);
    } catch (error) {
      const willRetry = this.#options.retryEvictions && this.#pending.add(key, by);
      if (this.#events.observed) this.#events.emit({ type: 'evict-failed', key, error, willRetry });
      throw error;
    }
  }

  close(): void {
    this.#pending.close();
    this.#releases.close();
  }

  #replace(request: ReplaceRequest): Promise<void> {
    return this.#inTime('replace', () => this.#store.replace(request));
  }

  /**
   * Sends a request for a lock. One that isn't known to have failed may have taken it, or may still take it. The release
   * follows it on the same connection, so it runs right after. If the store doesn't acknowledge it, it is tried again; and
   * should a reply come in the end that says that the lock was taken, it is released once more, since then the first release
   * may have gone another way.
   */
  #orRelease<T>(
    lock: LeasedRelease,
    command: StoreCommand,
    send: () => Promise<T>,
    took: (reply: T) => boolean,
    breaker?: CircuitBreaker,
  ): Promise<T> {
    const failed = (error: unknown, reply: Promise<T> | undefined) => {
      this.#release(lock, !(error instanceof StoreReplyError));
      reply?.then(
        (late) => took(late) && this.#release(lock, true),
        () => {},
      );
    };
    return this.#inTime(command, send, { breaker, failed });
  }

  /** @param mayStillBeTaken the request for the lock may run after this */
  #release(lock: LeasedRelease, mayStillBeTaken: boolean): void {
    const { kind, key, token, claimed } = lock;
    this.#store.end({ kind, key, token, claimed }).then(
      ({ is }) => is === 'refused' && mayStillBeTaken && this.#releases.add(lock),
      () => this.#releases.add(lock),
    );
  }

  #breakerOf(key: string): CircuitBreaker {
    const part = this.partOf(key);
    let breaker = this.#breakers.get(part);
    if (!breaker) {
      breaker = new CircuitBreaker(this.#clock, FAILURES, LEFT_ALONE);
      this.#breakers.set(part, breaker);
    }
    return breaker;
  }

  /** Sends a command, and takes note of how it fares. One promise for all of it, since each hit and each miss comes here. */
  #inTime<T>(command: StoreCommand, send: () => Promise<T>, guard: Guard<T> = {}): Promise<T> {
    const { deadline = this.#options.commandTimeout, breaker } = guard;
    return new Promise((resolve, reject) => {
      const isTry = breaker?.begin() ?? false;
      let reply: Promise<T> | undefined;
      let isOver = false;
      const fail = (error: unknown) => {
        if (isOver) return;
        isOver = true;
        timer.clear();
        breaker?.failed(error, isTry);
        this.#trouble.failed(command, error);
        if (this.#events.observed) this.#events.emit({ type: 'store-error', command, error });
        guard.failed?.(error, reply);
        reject(error);
      };
      const timer = this.#clock.after(deadline, () => fail(new CommandTimeoutError(command, deadline)));
      try {
        reply = send();
      } catch (error) {
        return fail(error);
      }
      reply.then((answer) => {
        if (isOver) return;
        isOver = true;
        timer.clear();
        breaker?.succeeded(isTry);
        this.#trouble.succeeded(command);
        resolve(answer);
      }, fail);
    });
  }
}

/** The texts of some keys among those that were not read. */
function amongAll(keys: readonly string[], read: readonly string[], reply: ReadReply): ReadReply {
  const texts = new Map(read.map((key, i) => [key, reply.texts[i]]));
  return { ...reply, texts: keys.map((key) => (texts.has(key) ? texts.get(key) : new EvictionPendingError(key))) };
}
