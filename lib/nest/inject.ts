import { Inject } from '@nestjs/common';
import { checkCacheName } from './cache-name.js';
import { lockServiceToken, stampedeCacheToken } from './tokens.js';

/**
 * Injects the cache that was registered under a name. The default one needs no decorator: its class says it.
 *
 * @throws InvalidOptionError when the name can't be one
 * @example constructor(@InjectStampedeCache('sessions') private readonly sessions: StampedeCache) {}
 */
export function InjectStampedeCache(name?: string): ParameterDecorator & PropertyDecorator {
  return Inject(stampedeCacheToken(checkCacheName(name, 'name')));
}

/**
 * Injects the lock service of the cache that was registered under a name.
 *
 * @throws InvalidOptionError when the name can't be one
 * @example constructor(@InjectLockService('sessions') private readonly locks: LockService) {}
 */
export function InjectLockService(name?: string): ParameterDecorator & PropertyDecorator {
  return Inject(lockServiceToken(checkCacheName(name, 'name')));
}
