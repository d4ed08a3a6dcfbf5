import { resolveCachePolicy } from './cache-policy.js';
import { type Clock, systemClock } from './clock.js';
import { coordinate } from './coordination.js';
import { InvalidOptionError, StoreDeniedError } from './errors.js';
import { limitLoadsTo } from './limit-loads.js';
import { LockService } from './lock-service.js';
import { type StampedeLogger, silentLogger } from './logger.js';
import { resolveNear } from './near-options.js';
import type { CacheOptions } from './options.js';
import { type ErrorCodec, remoteErrorCodec } from './outcome.js';
import {
  resolveCommandTimeout,
  resolveDrainTimeout,
  resolveMaxConcurrentLoads,
  resolveOnBoot,
  resolveRetryEvictions,
} from './resolve-cache-options.js';
import { StampedeCache } from './stampede-cache.js';
import type { Store } from './store.js';
import type { Random } from './waiting.js';

/** What a cache is put together from, beside its options. */
export interface CacheParts {
  readonly store: Store;
  readonly errorCodec?: ErrorCodec;
  readonly logger?: StampedeLogger;
  readonly clock?: Clock;
  readonly random?: Random;
}

/** A cache and the lock service on the same store. */
export interface Stampede {
  readonly cache: StampedeCache;
  readonly locks: LockService;
  /**
   * Connects. Resolves when the store is ready, and also when it isn't in time: then loaders answer until it is.
   *
   * @throws InvalidOptionError when it turns out that the store can't connect by what it was given
   * @throws StoreDeniedError when it refuses our credentials, or a right that we need
   * @throws whatever keeps the store from being ready in time, with `onBoot: 'fail'`
   */
  start(): Promise<void>;
  /** Waits for the loads that run now. What it waits is taken off the `drainTimeout` that `close` has. */
  settle(): Promise<void>;
  /** Drains running loads, releases locks, and ends every connection and timer. May be called again. */
  close(): Promise<void>;
}

/**
 * Puts a cache and its lock service together on a store.
 *
 * @throws InvalidOptionError naming the option
 */
export function createStampede(parts: CacheParts, options: CacheOptions = {}): Stampede {
  const {
    store,
    clock = systemClock,
    random = Math.random,
    logger = options.logger ?? silentLogger,
    errorCodec = remoteErrorCodec,
  } = parts;
  const near = resolveNear(options.near);
  const policy = resolveCachePolicy(options, near !== undefined);
  const onBoot = resolveOnBoot(options);
  let patience = resolveDrainTimeout(options);
  const coordination = coordinate(store, clock, random, logger, {
    commandTimeout: resolveCommandTimeout(options),
    retryEvictions: resolveRetryEvictions(options),
  });
  const loadLimit = limitLoadsTo(resolveMaxConcurrentLoads(options));
  const cache = new StampedeCache(coordination, policy, errorCodec, loadLimit, near);
  const locks = new LockService(coordination, policy);
  if (policy.onWaitTimeout === 'throw' && policy.wait < 2 * policy.lease) {
    logger.warn(
      `'wait' (${policy.wait} ms) is below twice the 'lease' (${policy.lease} ms): should a process die while it loads, all ` +
        `who wait give up before its lease ends. Raise 'wait', lower 'lease', or set onWaitTimeout: 'load'.`,
    );
  }
  let closed: Promise<void> | undefined;
  return {
    cache,
    locks,
    async start() {
      try {
        await coordination.store.start();
      } catch (error) {
        if (onBoot === 'fail' || error instanceof InvalidOptionError || error instanceof StoreDeniedError) throw error;
      }
    },
    async settle() {
      const startedAt = clock.now();
      await cache.settle(patience);
      patience = Math.max(0, patience - (clock.now() - startedAt));
    },
    close() {
      closed ??= (async () => {
        await cache.drain(patience);
        await locks.close();
        coordination.store.close();
        await store.close();
        coordination.events.complete();
      })();
      return closed;
    },
  };
}
