import { ConfigurableModuleBuilder, type DynamicModule } from '@nestjs/common';
import { InvalidOptionError } from '../core/errors.js';
import { checkCacheName } from './cache-name.js';
import { cacheProviders } from './cache-providers.js';
import type { StampedeCacheExtras, StampedeCacheOptions } from './module-options.js';
import { cacheAccessToken, lockServiceToken, STAMPEDE_CACHE_OPTIONS, stampedeCacheToken } from './tokens.js';

export const { ConfigurableModuleClass } = new ConfigurableModuleBuilder<StampedeCacheOptions>({
  optionsInjectionToken: STAMPEDE_CACHE_OPTIONS,
})
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createStampedeCacheOptions')
  .setExtras<StampedeCacheExtras>({ name: undefined, isGlobal: true }, withCache)
  .build();

/** Adds what a registration provides: the cache, its locks, and what decorated methods use. */
function withCache(definition: DynamicModule, extras: StampedeCacheExtras): DynamicModule {
  const { isGlobal = true } = extras;
  if (typeof isGlobal !== 'boolean') throw new InvalidOptionError('isGlobal', isGlobal, 'true or false');
  const name = checkCacheName(extras.name, 'name');
  return {
    ...definition,
    global: isGlobal,
    providers: [...(definition.providers ?? []), ...cacheProviders(name)],
    exports: [stampedeCacheToken(name), lockServiceToken(name), cacheAccessToken(name)],
  };
}
