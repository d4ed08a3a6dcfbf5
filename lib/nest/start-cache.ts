import { Logger } from '@nestjs/common';
import { createStampede, type Stampede } from '../core/create.js';
import { InvalidOptionError } from '../core/errors.js';
import type { StampedeLogger } from '../core/logger.js';
import type { ReadFrom } from '../core/options.js';
import {
  resolveCommandTimeout,
  resolveConnectTimeout,
  resolveNamespace,
  resolveReadFrom,
  resolveReplicas,
} from '../core/resolve-cache-options.js';
import type { Store } from '../core/store.js';
import { MemoryStore } from '../memory/memory-store.js';
import type { ConnectionOption } from '../redis/connection-source.js';
import { RedisStore } from '../redis/redis-store.js';
import { httpErrorCodec } from './http-error-codec.js';
import type { StampedeCacheOptions } from './module-options.js';

/** A cache that is ready, with its locks, and where its decorators log. */
export interface StartedCache extends Stampede {
  readonly logger: StampedeLogger;
}

/**
 * Makes the cache of a registration and connects it, so that it is ready before whoever it is injected into.
 *
 * @throws InvalidOptionError naming the option
 */
export async function startCache(options: StampedeCacheOptions, name: string | undefined): Promise<StartedCache> {
  const logger = options.logger ?? new Logger(name === undefined ? 'StampedeCache' : `StampedeCache ${name}`);
  const store = createStore(options, name, logger);
  const { errorCodec = httpErrorCodec, clock } = options;
  const stampede = createStampede({ store, errorCodec, logger, ...(clock && { clock }) }, options);
  try {
    await stampede.start();
  } catch (error) {
    await stampede.close();
    throw error;
  }
  // When another provider fails the boot, Nest calls no hook by which we could close.
  if (store instanceof RedisStore) store.unref();
  return { ...stampede, logger };
}

function createStore(options: StampedeCacheOptions, name: string | undefined, logger: StampedeLogger): Store {
  const namespace = namespaceOf(options.namespace, name);
  const replicas = resolveReplicas(options.replicas);
  const readFrom = resolveReadFrom(options.readFrom);
  if (options.store !== undefined || !('connection' in options)) checkNeedsNoReplicas(replicas, readFrom);
  if (typeof options.store === 'object') return options.store;
  if (!isOnRedis(options)) {
    logger.log("The cache is in this process's memory, so processes are not coordinated: each loads for itself.");
    return new MemoryStore({ ...(options.clock && { clock: options.clock }) });
  }
  // Without `store`, the options were refused if this were `undefined`.
  const connection = options.connection as ConnectionOption;
  return new RedisStore({
    connection,
    namespace,
    commandTimeout: resolveCommandTimeout(options),
    connectTimeout: resolveConnectTimeout(options.connectTimeout),
    replicas,
    readFrom,
    logger,
  });
}

/** A store that isn't ours to make, or in memory, would not hear of them. */
function checkNeedsNoReplicas(replicas: number, readFrom: ReadFrom): void {
  const mend = "left out without 'connection', or with 'store': only a Redis that we connect to has replicas";
  if (replicas > 0) throw new InvalidOptionError('replicas', replicas, mend);
  if (readFrom === 'replica') throw new InvalidOptionError('readFrom', readFrom, mend);
}

export function isOnRedis(options: StampedeCacheOptions): boolean {
  return options.store === undefined && 'connection' in options;
}

/** Named caches are apart whatever is given: options that two of them share would otherwise make them one. */
export function namespaceOf(given: string | undefined, name: string | undefined): string {
  const namespace = resolveNamespace(given);
  return name === undefined ? namespace : `${namespace}.${name}`;
}
