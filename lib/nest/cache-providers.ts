import type { Provider } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { InvalidOptionError } from '../core/errors.js';
import type { LockService } from '../core/lock-service.js';
import type { StampedeCache } from '../core/stampede-cache.js';
import type { CacheAccess } from './cache-access.js';
import { checkModuleOptions } from './module-options.js';
import { checkProfiles } from './profile-uses.js';
import { type StartedCache, startCache } from './start-cache.js';
import { cacheAccessToken, lockServiceToken, STAMPEDE, STAMPEDE_CACHE_OPTIONS, stampedeCacheToken } from './tokens.js';

/** The providers of one registration. Each may be overridden in a test; those after it then get what was put there. */
export function cacheProviders(name: string | undefined): Provider[] {
  const [cache, locks] = [stampedeCacheToken(name), lockServiceToken(name)];
  return [
    {
      provide: STAMPEDE,
      useFactory: (options: unknown, modules: ModulesContainer): Promise<StartedCache> => {
        checkModuleOptions(options);
        checkIsOnlyOne(name, modules);
        checkProfiles(options, name, modules);
        return startCache(options, name);
      },
      inject: [STAMPEDE_CACHE_OPTIONS, ModulesContainer],
    },
    { provide: cache, useFactory: (started: StartedCache) => started.cache, inject: [STAMPEDE] },
    { provide: locks, useFactory: (started: StartedCache) => started.locks, inject: [STAMPEDE] },
    {
      provide: cacheAccessToken(name),
      useFactory: (cache: StampedeCache, locks: LockService, { logger }: StartedCache): CacheAccess => ({
        cache,
        locks,
        logger,
      }),
      inject: [cache, locks, STAMPEDE],
    },
  ];
}

/**
 * Of two that every module sees, some would get the one and some the other: with the memory store, what one evicts would
 * live on in the other.
 */
function checkIsOnlyOne(name: string | undefined, modules: ModulesContainer): void {
  const token = stampedeCacheToken(name);
  const registrations = [...modules.values()].filter((module) => module.isGlobal && module.providers.has(token));
  if (registrations.length < 2) return;
  throw new InvalidOptionError(
    'name',
    name,
    'different for each StampedeCacheModule.forRoot() of an application (import the first one where you need it, or say ' +
      'isGlobal: false)',
  );
}
