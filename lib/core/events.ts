import { type Observable, Subject } from 'rxjs';
import type { StaleReason } from './provenance.js';

export type { StaleReason } from './provenance.js';

/** What happened to one key, or to the store. `key` is the composed key. */
export type CacheEvent =
  /** A call was answered by an entry in the store. */
  | { readonly type: 'hit'; readonly key: string }
  /** A call was answered by the near cache. */
  | { readonly type: 'near-hit'; readonly key: string }
  /** The store had no entry that could be used. */
  | { readonly type: 'miss'; readonly key: string }
  /** An entry's text could not be read; it counts as missing and is overwritten. */
  | { readonly type: 'unreadable'; readonly key: string; readonly error: unknown }
  /**
   * A loader starts. `alone`: without the lock, because the store is away or a wait timed out under `'load'`. `background`:
   * nobody waits for it.
   */
  | { readonly type: 'load'; readonly key: string; readonly alone: boolean; readonly background: boolean }
  /** A call was answered with a value that is no longer fresh. */
  | { readonly type: 'stale'; readonly key: string; readonly reason: StaleReason; readonly error?: unknown }
  /** The store is away, and a call was answered with what this process loaded within the last second. */
  | { readonly type: 'kept'; readonly key: string }
  /** A loader threw, or took longer than `maxLoad`. */
  | { readonly type: 'load-failed'; readonly key: string; readonly error: unknown; readonly duration: number }
  /** A loaded value was stored, for `ttl` milliseconds. */
  | { readonly type: 'fill'; readonly key: string; readonly ttl: number; readonly duration: number }
  /** A loaded value was answered but not stored; `error` is there when the reason is one. */
  | { readonly type: 'not-stored'; readonly key: string; readonly reason: NotStoredReason; readonly error?: unknown }
  /** This process waits for another's load. */
  | { readonly type: 'wait'; readonly key: string }
  /** A load of another process failed, or gave a value that isn't stored, and its followers here got that. */
  | { readonly type: 'outcome'; readonly key: string }
  /** A caller's `wait` ended. */
  | { readonly type: 'wait-timeout'; readonly key: string; readonly waited: number }
  /** The lease of a load that was under way was lost: `other` holds it now, or it is `gone`. */
  | { readonly type: 'lease-lost'; readonly key: string; readonly holder: 'other' | 'gone' }
  | { readonly type: 'evict'; readonly key: string }
  | { readonly type: 'expire'; readonly key: string }
  /** An eviction, or `expire`, did not reach the store; with `retryEvictions` it will be made up for. */
  | { readonly type: 'evict-failed'; readonly key: string; readonly error: unknown; readonly willRetry: boolean }
  | { readonly type: 'set'; readonly key: string; readonly ttl: number }
  /** A lock of the lock service was taken. */
  | { readonly type: 'lock-acquired'; readonly key: string; readonly waited: number; readonly fencingToken: number }
  | { readonly type: 'lock-released'; readonly key: string; readonly held: number }
  /** A lock's lease ended, or another took it, while it was held. */
  | { readonly type: 'lock-lost'; readonly key: string }
  /** A command of the store failed, or had no reply in time. */
  | { readonly type: 'store-error'; readonly command: StoreCommand; readonly error: unknown };

/**
 * `refused`: the lease had ended (an eviction, a `set`, a lost lease). `cacheIf`: it said no. `ttl`: it was 0.
 * `unserializable`: the codec could not encode it. `options`: `ttl` or `cacheIf` threw or gave nonsense. `store`: the store
 * could not write, or was away.
 */
export type NotStoredReason = 'refused' | 'cacheIf' | 'ttl' | 'unserializable' | 'options' | 'store';

/** The steps of the store, by its methods' names. */
export type StoreCommand = 'read' | 'lead' | 'leaseLeft' | 'end' | 'renew' | 'replace';

/** Where events go. An event is built only when somebody listens: `if (events.observed) events.emit({ … })`. */
export class Events {
  readonly #subject = new Subject<CacheEvent>();

  /** The stream for users; completes when the cache closes. */
  readonly stream: Observable<CacheEvent> = this.#subject.asObservable();

  get observed(): boolean {
    return this.#subject.observed;
  }

  /** @param times calls that were made alike are one caller, and each has its event */
  emit(event: CacheEvent, times = 1): void {
    for (let i = 0; i < times; i += 1) this.#subject.next(event);
  }

  complete(): void {
    this.#subject.complete();
  }
}
