import { StampedeCacheError } from '../core/errors.js';

/** A decorated method was called on an instance that Nest has not given its cache. */
export class CacheNotInjectedError extends StampedeCacheError {
  readonly code = 'CACHE_NOT_INJECTED';
  constructor(
    /** The class and the method, as in `ProductsService.find`. */
    readonly method: string,
  ) {
    const [className] = method.split('.');
    super(
      `${method} has no cache: Nest injects it, and this instance was not made by Nest (but by 'new ${className}()' or a ` +
        `'useFactory'), or is still in its constructor, or the method was called without its instance. Let Nest make it ` +
        `(providers: [${className}], or in a 'useFactory' ModuleRef's create(${className})), in a test with ` +
        `StampedeCacheModule.forTest(); or call it uncached: bypassStampedeCache(new ${className}(…)).`,
    );
  }
}
