import type { Provider } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { InvalidOptionError } from '../core/errors.js';
import type { LockService } from '../core/lock-service.js';
import type { StampedeCache } from '../core/stampede-cache.js';
import type { CacheAccess } from './cache-access.js';
import { checkModuleOptions, type StampedeCacheOptions } from './module-options.js';
import { checkProfiles } from './profile-uses.js';
import { isOnRedis, namespaceOf, type StartedCache, startCache } from './start-cache.js';
import {
  cacheAccessToken,
  lockServiceToken,
  STAMPEDE,
  STAMPEDE_CACHE_NAME,
  STAMPEDE_CACHE_OPTIONS,
  stampedeCacheToken,
} from './tokens.js';

/** The providers of one registration. Each may be overridden in a test; those after it then get what was put there. */
export function cacheProviders(name: string | undefined): Provider[] {
  const [cache, locks] = [stampedeCacheToken(name), lockServiceToken(name)];
  return [
    { provide: STAMPEDE_CACHE_NAME, useValue: { name } },
    {
      provide: STAMPEDE,
      useFactory: (options: unknown, modules: ModulesContainer): Promise<StartedCache> => {
        checkModuleOptions(options);
        checkIsOnlyOne(name, modules);
        checkNamespace(options, name, modules);
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

/**
 * A namespace that is given may be what another cache's namespace and name make together. Of two, the one whose options are
 * known later finds the other. Which Redis they lead to can't be told from their options.
 */
function checkNamespace(options: StampedeCacheOptions, name: string | undefined, modules: ModulesContainer): void {
  if (!isOnRedis(options)) return;
  const namespace = namespaceOf(options.namespace, name);
  for (const { providers } of modules.values()) {
    const registered = providers.get(STAMPEDE_CACHE_NAME)?.instance as
      | { readonly name: string | undefined }
      | undefined;
    const others = Object(providers.get(STAMPEDE_CACHE_OPTIONS)?.instance) as StampedeCacheOptions;
    if (!registered || registered.name === name || !isOnRedis(others)) continue;
    if (namespaceOf(others.namespace, registered.name) !== namespace) continue;
    const other = registered.name === undefined ? 'the default cache' : `the cache '${registered.name}'`;
    throw new InvalidOptionError(
      'namespace',
      options.namespace,
      `another one: '${namespace}' is that of ${other} as well`,
    );
  }
}
