import { applyDecorators, SetMetadata, UseInterceptors } from '@nestjs/common';
import type { Ttl } from '../core/options.js';
import { interceptorOf } from './cache-aside.interceptor.js';
import {
  type BodyOf,
  CACHED_ROUTE,
  type CachedRoute,
  type CacheResponseOptions,
  checkCacheResponseOptions,
  type RouteHandler,
} from './cache-response-options.js';

/** A decorator for a handler of a controller. */
export type RouteHandlerDecorator<H extends RouteHandler> = (
  target: object,
  property: string | symbol,
  descriptor: TypedPropertyDescriptor<H>,
) => void;

/**
 * Routes the GET requests of a handler through the cache, by the URL that was asked for: one request runs the handler, all
 * who ask for the same URL meanwhile, here or in another process, get its answer, status and body, which is stored for
 * `ttl`.
 *
 * Answers are told apart by host, path and query only: a handler that looks at other headers (a language, a tenant) must not
 * have it.
 *
 * Never shared, and answered as if this were not there: requests that say who asks (`Authorization`, a cookie, an API key,
 * a user set by a guard), whatever is not a GET, answers with `Set-Cookie` or `Cache-Control: private`, streams, what is
 * written through `@Res()`, and bodies that aren't plain data (see the log). Errors, and what has another status than 2xx,
 * are not stored.
 *
 * @param options the `ttl` (milliseconds, `'60s'`, or a function of the body), or options with it
 * @throws InvalidOptionError where it is written, for an option that can't be one
 * @example
 * @Get(':id')
 * @CacheResponse('60s')
 * find(@Param('id') id: string): Promise<Product> { … }
 */
export function CacheResponse<H extends RouteHandler>(
  options: Ttl<BodyOf<H>> | CacheResponseOptions<BodyOf<H>>,
): RouteHandlerDecorator<H> {
  const checked = checkCacheResponseOptions(options);
  const interceptor = UseInterceptors(interceptorOf(checked.cache));
  return (target, property, descriptor) => {
    const route: CachedRoute = { ...checked, property };
    applyDecorators(SetMetadata(CACHED_ROUTE, route), interceptor)(target, property, descriptor);
  };
}
