import type { LockService } from '../core/lock-service.js';
import type { StampedeLogger } from '../core/logger.js';
import type { StampedeCache } from '../core/stampede-cache.js';

/** What decorated methods of one cache work with. Nest injects it into each instance that has such methods. */
export interface CacheAccess {
  readonly cache: StampedeCache;
  readonly locks: LockService;
  readonly logger: StampedeLogger;
}
