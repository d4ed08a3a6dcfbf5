import { inspect } from 'node:util';
import { messageOf } from './message-of.js';

/**
 * What every error of this library at run time extends. `code` is stable; the message says what to do next. Errors that
 * a loader throws are never wrapped in one.
 */
export abstract class StampedeCacheError extends Error {
  abstract readonly code: string;
  override get name(): string {
    return this.constructor.name;
  }
}

/** An option that can't be used; thrown where it is given: at boot, at decoration, or at the call. */
export class InvalidOptionError extends TypeError {
  readonly code = 'INVALID_OPTION';
  override readonly name = 'InvalidOptionError';
  constructor(
    /** The option's name, as the user writes it. */
    readonly option: string,
    value: unknown,
    expected: string,
  ) {
    super(`${option} must be ${expected}; it is ${inspect(value, { depth: 0 })}`);
    this.#value = value;
    this.#expected = expected;
  }

  readonly #value: unknown;
  readonly #expected: string;

  /** @internal The same, of an option of `parent`. */
  in(parent: string): InvalidOptionError {
    return new InvalidOptionError(`${parent}.${this.option}`, this.#value, this.#expected);
  }
}

/** A key, or what a key function returned, that can't be one. */
export class InvalidKeyError extends TypeError {
  readonly code = 'INVALID_KEY';
  override readonly name = 'InvalidKeyError';
  constructor(value: unknown, where = 'The key') {
    super(
      `${where} must be a non-empty string or a non-empty array of strings, numbers, bigints, booleans, null or ` +
        `undefined; it is ${inspect(value, { depth: 0 })}`,
    );
  }
}

/** What a loader of many returned can't be matched with what it was asked for. */
export class InvalidLoadResultError extends TypeError {
  readonly code = 'INVALID_LOAD_RESULT';
  override readonly name = 'InvalidLoadResultError';
}

/** The caller's `wait` ended while another call's load was still running. */
export class CacheWaitTimeoutError extends StampedeCacheError {
  readonly code = 'CACHE_WAIT_TIMEOUT';
  constructor(
    readonly key: string,
    /** How long the caller waited, in milliseconds. */
    readonly waited: number,
  ) {
    super(
      `Waited ${Math.round(waited)} ms for another call to load '${key}'. Raise 'wait', or let the caller load by ` +
        `itself with onWaitTimeout: 'load'.`,
    );
  }
}

/** The loader took longer than `maxLoad`; its signal was aborted. */
export class LoadTimeoutError extends StampedeCacheError {
  readonly code = 'LOAD_TIMEOUT';
  constructor(
    readonly key: string,
    /** The `maxLoad` that was passed, in milliseconds. */
    readonly maxLoad: number,
  ) {
    super(
      `Loading '${key}' took longer than maxLoad (${maxLoad} ms) and was aborted. Raise 'maxLoad', or load faster.`,
    );
  }
}

/**
 * Another process's loader threw while this one waited for it. It has the original's `name`, `message` and `code`; its
 * stack is this process's.
 */
export class RemoteLoadError extends StampedeCacheError {
  readonly #name: string;
  readonly code: string;
  constructor(original: { readonly name: string; readonly message: string; readonly code?: string }) {
    super(original.message);
    this.#name = original.name;
    this.code = original.code ?? 'REMOTE_LOAD_ERROR';
  }
  override get name(): string {
    return this.#name;
  }
}

/** Some keys could not be evicted: Redis did not confirm it in time. They may or may not be gone. */
export class CacheEvictionError extends StampedeCacheError {
  readonly code = 'CACHE_EVICTION';
  constructor(
    /** The keys whose eviction was not acknowledged. */
    readonly keys: readonly string[],
    options: ErrorOptions,
  ) {
    super(
      `The eviction was not acknowledged for: ${keys.join(', ')}. It is made up for as soon as the store answers, unless ` +
        'retryEvictions is off; then evict again.',
      options,
    );
  }
}

/** The cache's store did not do what a call needs (`set`, `expire`, and `getOrLoad` with `onRedisError: 'throw'`); the cause says why. */
export class CacheUnavailableError extends StampedeCacheError {
  readonly code = 'CACHE_UNAVAILABLE';
  constructor(command: string, options: ErrorOptions) {
    super(`The cache's store did not do '${command}': ${messageOf(options.cause)}`, options);
  }
}

/** The application is shutting down: the load was given up. */
export class CacheClosedError extends StampedeCacheError {
  readonly code = 'CACHE_CLOSED';
  constructor() {
    super('The cache is closed, because the application is shutting down.');
  }
}

/** Somebody else held the lock until the caller's `wait` ended. */
export class LockContendedError extends StampedeCacheError {
  readonly code = 'LOCK_CONTENDED';
  constructor(
    readonly key: string,
    /** How long the caller waited, in milliseconds. */
    readonly waited: number,
  ) {
    super(
      `The lock '${key}' was held by another for the ${Math.round(waited)} ms of 'wait'. Try again, or raise 'wait'.`,
    );
  }
}

/** The lock was lost while it was held: its lease ended, or another took it. */
export class LockLostError extends StampedeCacheError {
  readonly code = 'LOCK_LOST';
  constructor(readonly key: string) {
    super(
      `The lock '${key}' is no longer ours: its lease ended or it was taken over. Stop, and let the fencing token guard ` +
        'what was written.',
    );
  }
}

/** It is not known whether the lock is free, or not certain that it would be kept; the cause says why. Nothing is locked. */
export class LockUnavailableError extends StampedeCacheError {
  readonly code = 'LOCK_UNAVAILABLE';
  constructor(
    readonly key: string,
    options: ErrorOptions,
  ) {
    super(`The lock '${key}' can't be had: ${messageOf(options.cause)}`, options);
  }
}

/** A store's command had no reply within `commandTimeout`. The command may still run. */
export class CommandTimeoutError extends StampedeCacheError {
  readonly code = 'COMMAND_TIMEOUT';
  constructor(command: string, commandTimeout: number) {
    super(`no reply to '${command}' within commandTimeout (${commandTimeout} ms)`);
  }
}

/** The store answered, but with an error: it is there. A store throws this one where it can tell. */
export class StoreReplyError extends StampedeCacheError {
  readonly code = 'STORE_REPLY';
  constructor(cause: unknown) {
    super(messageOf(cause), { cause });
  }
}

/** Too few replicas confirmed a write within their time. The primary has it, and they may get it yet. */
export class NotReplicatedError extends StampedeCacheError {
  readonly code = 'NOT_REPLICATED';
  constructor(
    /** How many replicas confirmed it. */
    readonly confirmed: number,
    replicas: number,
    within: number,
  ) {
    super(`${confirmed} of the ${replicas} 'replicas' asked for have confirmed it within ${within} ms`);
  }
}

/** The store has failed again and again and is left alone for a moment. */
export class CircuitOpenError extends StampedeCacheError {
  readonly code = 'CIRCUIT_OPEN';
  constructor() {
    super('it failed several times in a row and is left alone for a moment');
  }
}

/** What the store has for this key can't be trusted: its eviction has still to be made up for. */
export class EvictionPendingError extends StampedeCacheError {
  readonly code = 'EVICTION_PENDING';
  constructor(key: string) {
    super(`the eviction of '${key}' did not reach it and has still to be made up for`);
  }
}

/** The store doesn't let us in, or not to what we need: wrong credentials, or rights that are missing. */
export class StoreDeniedError extends StampedeCacheError {
  readonly code = 'STORE_DENIED';
  constructor(cause: unknown, mend: string) {
    super(`The cache's store refuses us: ${messageOf(cause)}. ${mend}`, { cause });
  }
}
