import { applyDecorators, SetMetadata, UseInterceptors } from '@nestjs/common';
import { noteProfile } from '../profile-uses.js';
import { interceptorOf } from './cache-aside.interceptor.js';
import {
  type BodyOf,
  CACHED_ROUTE,
  type CachedRoute,
  type CacheResponseSettings,
  checkCacheResponseOptions,
  type RouteHandler,
} from './cache-response-options.js';

/** A decorator for a handler of a controller, or for all handlers of one. */
export interface RouteHandlerDecorator<H extends RouteHandler> {
  (target: object, property: string | symbol, descriptor: TypedPropertyDescriptor<H>): void;
  (controller: abstract new (...args: never[]) => unknown): void;
}

/**
 * Routes the GET and HEAD requests of a handler, or of all handlers of a controller, through the cache: one request runs the
 * handler, all who ask for the same meanwhile, here or in another process, get its answer: status, body, and some headers,
 * which are stored for `ttl`. On a handler it goes before that of its controller, and `false` leaves a handler out.
 *
 * Answers are told apart by method, host, path and query, the headers that `vary` names or the handler takes by
 * `@Headers('name')`, and what `key` adds. What else a handler looks at must be named by one of these.
 *
 * Never shared, and answered as if this were not there: requests that say who asks (`Authorization`, a cookie, an API key,
 * a user set by a guard …) unless `key` or `vary` names it or `shared` is true, other methods, answers with `Set-Cookie` or
 * `Cache-Control: private`, streams, server-sent events, what is written through `@Res()`, and bodies that aren't plain data
 * (see the log). Errors, and what has another status than 2xx, are not stored.
 *
 * On a GraphQL query's resolver, or a handler of messages, it needs `key`, and does nothing without.
 *
 * @param options the `ttl` (milliseconds, `'60s'`, or a function of the body), the name of a profile of the module's, or options;
 * `false` for none
 * @throws InvalidOptionError where it is written, for an option that can't be one
 * @example
 * @Get(':id')
 * @CacheResponse('60s')
 * find(@Param('id') id: string): Promise<Product> { … }
 */
export function CacheResponse<H extends RouteHandler>(
  options: CacheResponseSettings<BodyOf<H>> | false,
): RouteHandlerDecorator<H> {
  if (options === false) return SetMetadata(CACHED_ROUTE, false) as RouteHandlerDecorator<H>;
  const route = checkCacheResponseOptions(options);
  return applyDecorators(
    SetMetadata(CACHED_ROUTE, route),
    UseInterceptors(interceptorOf(route.cache)),
    noteProfileOf(route),
  ) as RouteHandlerDecorator<H>;
}

/** For the check at boot. */
function noteProfileOf({ cache, profile }: CachedRoute): ClassDecorator & MethodDecorator {
  return (target: object, property?: string | symbol) => {
    if (profile === undefined) return;
    const isController = typeof target === 'function';
    const controller = isController ? target : target.constructor;
    const where = property === undefined ? controller.name : `${controller.name}.${String(property)}`;
    noteProfile(isController ? target.prototype : target, { cache, profile, where });
  };
}
