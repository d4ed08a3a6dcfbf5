import { Logger } from '@nestjs/common';
import { createStampede, type Stampede } from '../core/create.js';
import { LONGEST_WAIT, parseDuration } from '../core/durations.js';
import type { StampedeLogger } from '../core/logger.js';
import { DEFAULTS, resolveCommandTimeout, resolveNamespace } from '../core/options.js';
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
  return { ...stampede, logger };
}

function createStore(options: StampedeCacheOptions, name: string | undefined, logger: StampedeLogger): Store {
  const namespace = resolveNamespace(options.namespace ?? namespaceOf(name));
  if (typeof options.store === 'object') return options.store;
  if (options.store === 'memory' || !('connection' in options)) {
    logger.log("The cache is in this process's memory, so processes are not coordinated: each loads for itself.");
    return new MemoryStore({ ...(options.clock && { clock: options.clock }) });
  }
  // Without `store`, the options were refused if this were `undefined`.
  const connection = options.connection as ConnectionOption;
  const { connectTimeout } = options;
  return new RedisStore({
    connection,
    namespace,
    commandTimeout: resolveCommandTimeout(options),
    ...(connectTimeout !== undefined && {
      connectTimeout: parseDuration(connectTimeout, 'connectTimeout', { min: 1, max: LONGEST_WAIT }),
    }),
    logger,
  });
}

function namespaceOf(name: string | undefined): string {
  return name === undefined ? DEFAULTS.namespace : `${DEFAULTS.namespace}.${name}`;
}
