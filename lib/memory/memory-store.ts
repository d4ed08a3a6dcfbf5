import { stampEntry } from '../core/entry.js';
import { CacheClosedError } from '../core/errors.js';
import { ERROR_OUTCOME } from '../core/outcome.js';
import {
  type ChangeListener,
  type EndReply,
  type EndRequest,
  type LeadReply,
  type LeadRequest,
  type LockKind,
  OUTCOME_KEPT,
  type ReadReply,
  type RenewReply,
  type RenewRequest,
  type ReplaceRequest,
  SHORT_LIVED,
  type Store,
  type StoredEntry,
  type WaitingReply,
} from '../core/store.js';
import { type MemoryLock, MemoryServer, type MemoryServerOptions } from './memory-server.js';

/** Whose memory a store uses. */
export interface MemoryStoreOptions extends MemoryServerOptions {
  /** State to share with other stores, as processes share a Redis server; then the other options are the server's. */
  readonly server?: MemoryServer;
}

/**
 * A store in this process's memory: what the cache uses without Redis, and what unit tests use. Each method does what the
 * script of its name does in Redis; replies and wake-ups come later, as over a network.
 */
export class MemoryStore implements Store {
  readonly process: string;
  readonly #server: MemoryServer;
  #closed = false;

  constructor({ server, ...options }: MemoryStoreOptions = {}) {
    this.#server = server ?? new MemoryServer(options);
    this.process = this.#server.nameProcess();
  }

  async start(): Promise<void> {
    await this.#send();
  }

  async read(keys: readonly string[], withTime = false): Promise<ReadReply> {
    await this.#send();
    const texts = keys.map((key) => this.#server.entries.get(key));
    return withTime ? { texts, now: Math.floor(this.#server.now()) } : { texts };
  }

  async lead(request: LeadRequest): Promise<LeadReply> {
    await this.#send();
    const { kind, key, token, outcomeSeen, unreadable, refreshing, heedsError = false } = request;
    if (kind === 'lock') {
      const lock = this.#take(request);
      return lock.token === token ? { is: 'leading', fencingToken: lock.fencingToken } : this.#follow(request, lock);
    }

    const text = this.#server.entries.get(key);
    const freshUntil = text === undefined || text === unreadable ? undefined : freshUntilOf(text);
    const isFresh = freshUntil !== undefined && freshUntil !== refreshing && freshUntil > this.#server.now();
    if (text !== undefined && isFresh) return { is: 'hit', text };

    const outcome = this.#server.outcomes.get(key);
    const isHeeded = heedsError && freshUntil !== undefined && outcome?.text.startsWith(ERROR_OUTCOME);
    const isNew = outcomeSeen !== undefined && outcomeSeen !== outcome?.token;
    if (outcome && (isNew || isHeeded)) return { is: 'outcome', text: outcome.text };

    const lock = this.#take(request);
    return lock.token === token ? { is: 'leading' } : this.#follow(request, lock);
  }

  /** The lock that holds now: the request's own (also if it was taken before, by the same request), or another's. */
  #take({ kind, key, token, lease }: RenewRequest): MemoryLock {
    const name = lockName(kind, key);
    const held = this.#server.locks.get(name);
    if (held && held.token !== token) return held;
    const lock = held ?? { token, followers: new Set(), fencingToken: this.#server.nextFencingToken() };
    this.#server.locks.set(name, lock, lease);
    return lock;
  }

  #follow({ kind, key, follow }: LeadRequest, lock: MemoryLock): WaitingReply {
    const { locks } = this.#server;
    const name = lockName(kind, key);
    const leaseLeft = locks.timeLeft(name);
    if (follow) locks.set(name, { ...lock, followers: new Set(lock.followers).add(this.process) }, leaseLeft);
    const outcomeSeen = (kind === 'cache' && this.#server.outcomes.get(key)?.token) || '';
    return { is: 'waiting', token: lock.token, leaseLeft, wakes: follow, outcomeSeen };
  }

  async leaseLeft(key: string): Promise<number> {
    await this.#send();
    const name = lockName('cache', key);
    return this.#server.locks.get(name) ? this.#server.locks.timeLeft(name) : 0;
  }

  async end({ kind, key, token, entry, outcome, holdOff = 0, claimed }: EndRequest): Promise<EndReply> {
    await this.#send();
    const name = lockName(kind, key);
    const lock = this.#server.locks.get(name);
    if (lock?.token !== token) return { is: 'refused' };

    if (entry) this.#server.entries.set(key, this.#stamp(entry), entry.px);
    if (entry && claimed) this.#server.publishChange(key);
    this.#server.locks.delete(name);
    const willBeFound = entry !== undefined && (entry.freshFor ?? entry.px) >= SHORT_LIVED;
    if (outcome !== undefined && !willBeFound) {
      const isHeld = holdOff > 0 && this.#server.entries.get(key) !== undefined;
      const kept = isHeld ? holdOff : lock.followers.size > 0 ? OUTCOME_KEPT : 0;
      if (kept > 0) this.#server.outcomes.set(key, { token, text: outcome }, kept);
    }
    this.#server.publish(lock.followers, token);
    return { is: 'held', stored: entry !== undefined };
  }

  #stamp({ text, freshFor }: StoredEntry): string {
    return freshFor === undefined ? text : stampEntry(text, Math.floor(this.#server.now() + freshFor));
  }

  async renew({ kind, key, token, lease }: RenewRequest): Promise<RenewReply> {
    await this.#send();
    const name = lockName(kind, key);
    const lock = this.#server.locks.get(name);
    if (!lock) return 'gone';
    if (lock.token !== token) return 'other';
    this.#server.locks.set(name, lock, lease);
    return 'held';
  }

  async replace({ key, by }: ReplaceRequest): Promise<void> {
    await this.#send();
    const { entries, locks, outcomes } = this.#server;
    const name = lockName('cache', key);
    const ended = locks.get(name);
    const claim = typeof by === 'object' && { kind: 'cache' as const, key, token: by.claim, lease: by.lease };
    outcomes.delete(key);
    // The same claim, sent again: its own lock is not ended.
    if (!claim || ended?.token !== claim.token) {
      locks.delete(name);
      if (ended) this.#server.publish(new Set([holderOf(ended), ...ended.followers]), ended.token);
    }
    if (claim) this.#take(claim);
    else if (by === 'evict') entries.delete(key);
    else this.#expire(key);
    if (!claim) this.#server.publishChange(key);
  }

  #expire(key: string): void {
    const { entries } = this.#server;
    const timeLeft = entries.timeLeft(key);
    const text = entries.get(key);
    const now = Math.floor(this.#server.now());
    // What is stale already keeps its age.
    if (text !== undefined && (freshUntilOf(text) ?? 0) > now) entries.set(key, stampEntry(text, now), timeLeft);
  }

  onWake(wake: (token: string | undefined) => void): void {
    if (!this.#closed) this.#server.subscribe(this.process, wake);
  }

  onChange({ changed, listens }: ChangeListener): void {
    if (this.#closed) return;
    this.#server.subscribeToChanges(this.process, changed);
    listens(Infinity);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#server.unsubscribe(this.process);
  }

  /** Nothing is sent after `close`; what is sent arrives later than the call. */
  async #send(): Promise<void> {
    if (this.#closed) throw new CacheClosedError();
    await undefined;
  }
}

/** `Infinity` for an entry that is fresh as long as it is there; `undefined` for what is no entry. */
function freshUntilOf(text: string): number | undefined {
  const header = /^1;(\d*);/.exec(text);
  return header ? (header[1] === '' ? Infinity : Number(header[1])) : undefined;
}

/** The cache's locks and the lock service's never meet. */
function lockName(kind: LockKind, key: string): string {
  return `${kind} ${key}`;
}

function holderOf({ token }: MemoryLock): string {
  return token.slice(0, token.indexOf('#'));
}
