import type { InjectionToken } from '@nestjs/common';
import { LockService } from '../core/lock-service.js';
import { StampedeCache } from '../core/stampede-cache.js';

/**
 * What to inject, or to override in a test, to get a cache: the class for the default one, a symbol for a named one.
 *
 * @example Test.createTestingModule({ imports: [AppModule] }).overrideProvider(stampedeCacheToken('sessions')).useValue(fake);
 */
export function stampedeCacheToken(name?: string): InjectionToken<StampedeCache> {
  return name === undefined ? StampedeCache : named('StampedeCache', name);
}

/** The same for the lock service of a cache. */
export function lockServiceToken(name?: string): InjectionToken<LockService> {
  return name === undefined ? LockService : named('LockService', name);
}

/**
 * The options of every registered cache, each in its own module. A test can put others in their place, for all at once.
 *
 * @example Test.createTestingModule({ imports: [AppModule] }).overrideProvider(STAMPEDE_CACHE_OPTIONS).useValue({ store: 'memory' });
 */
export const STAMPEDE_CACHE_OPTIONS = Symbol.for('StampedeCacheModule options');

/** What a registration is called, beside its options. */
export const STAMPEDE_CACHE_NAME = Symbol.for('StampedeCacheModule name');

/** The running cache of a module. A module that was imported without `forRoot` has none, and Nest prints this. */
export const STAMPEDE = Symbol.for('StampedeCacheModule is imported as StampedeCacheModule.forRoot(), not as it is');

/**
 * What decorated methods are injected, and the name of the property that it goes to. Nest prints it when it has no such
 * provider, so it says what is missing.
 */
export function cacheAccessToken(name?: string): symbol {
  return named('StampedeCache for decorated methods', name);
}

function named(what: string, name: string | undefined): symbol {
  const options = name === undefined ? '' : `{ name: '${name}' }`;
  const which = name === undefined ? '' : ` '${name}'`;
  return Symbol.for(
    `${what}${which}: is StampedeCacheModule.forRoot(${options}) imported? In tests: forTest(${options})`,
  );
}
