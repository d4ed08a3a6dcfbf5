import 'reflect-metadata';
import {
  type CallHandler,
  type ExecutionContext,
  Inject,
  Injectable,
  type NestInterceptor,
  type Type,
} from '@nestjs/common';
import { defaultIfEmpty, lastValueFrom, type Observable, of } from 'rxjs';
import type { CacheAccess } from './cache-access.js';
import { CACHED_ROUTE, type CachedRoute } from './cache-response-options.js';
import { type HttpRequest, type HttpResponse, hasCredentials, isAnswered } from './http.js';
import { requestKey } from './request-key.js';
import { sendsEvents, versionOf, writesByItself } from './route-metadata.js';
import { answerLike, before, share } from './shared-response.js';
import { cacheAccessToken } from './tokens.js';

/** Marks a request that one of our interceptors has. A second one would wait for the first, which waits for it. */
const TAKEN = Symbol('stampede cache: request taken');

type TakableRequest = HttpRequest & { [TAKEN]?: true };

/**
 * Answers GET requests of handlers that have `@CacheResponse()` from the cache. That decorator applies it, so there is no
 * need to.
 */
@Injectable()
export class CacheAsideInterceptor implements NestInterceptor {
  readonly #access: CacheAccess;
  /** Handlers that a line in the log was written about. */
  readonly #warned = new Set<string>();

  constructor(@Inject(cacheAccessToken()) access: CacheAccess) {
    this.#access = access;
  }

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const route: CachedRoute | undefined = Reflect.getMetadata(CACHED_ROUTE, context.getHandler());
    if (!route || context.getType() !== 'http') return next.handle();
    const request = context.switchToHttp().getRequest<TakableRequest>();
    if (request.method !== 'GET' || hasCredentials(request) || request[TAKEN]) return next.handle();
    if (!this.#canBeShared(context, route)) return next.handle();
    request[TAKEN] = true;
    return this.#answer(context, next, route);
  }

  #canBeShared(context: ExecutionContext, { property }: CachedRoute): boolean {
    if (sendsEvents(context.getHandler())) return false;
    if (!writesByItself(context.getClass(), property)) return true;
    this.#warn(
      context,
      property,
      'writes its responses by itself. Return the body, and take the response by @Res({ passthrough: true }).',
    );
    return false;
  }

  async #answer(
    context: ExecutionContext,
    next: CallHandler,
    { property, query, getOrLoad }: CachedRoute,
  ): Promise<Observable<unknown>> {
    const http = context.switchToHttp();
    const response = http.getResponse<HttpResponse>();
    const key = requestKey(http.getRequest<HttpRequest>(), {
      name: nameOf(context, property),
      version: versionOf(context.getClass(), context.getHandler()),
      query,
    });
    let own: { readonly body: unknown } | undefined;
    const shared = await getOrLoad(this.#access.cache, key, async () => {
      const then = before(response);
      const body = await lastValueFrom(next.handle().pipe(defaultIfEmpty(undefined)));
      own = { body };
      if (isAnswered(response)) return { isPrivate: true };
      return share(body, response, then, (why) =>
        this.#warn(
          context,
          property,
          `answers with ${why}, and only plain data is stored. Where a serializer makes it plain, put that inside: ` +
            '@UseInterceptors(ClassSerializerInterceptor) above @CacheResponse().',
        ),
      );
    });
    // What this request's own handler made is answered as it is: a serializer outside may want to know its classes.
    if (own) return of(own.body);
    if ('isPrivate' in shared) return next.handle();
    answerLike(shared, response);
    return of(shared.body);
  }

  #warn(context: ExecutionContext, property: string | symbol, what: string): void {
    const name = nameOf(context, property);
    if (this.#warned.has(name)) return;
    this.#warned.add(name);
    this.#access.logger.warn(`${name} has @CacheResponse(), but ${what}`);
  }
}

/** The interceptor of the cache that was registered under a name. */
export function interceptorOf(cache: string | undefined): Type<CacheAsideInterceptor> {
  if (cache === undefined) return CacheAsideInterceptor;
  @Injectable()
  class NamedCacheAsideInterceptor extends CacheAsideInterceptor {
    constructor(@Inject(cacheAccessToken(cache)) access: CacheAccess) {
      super(access);
    }
  }
  return NamedCacheAsideInterceptor;
}

function nameOf(context: ExecutionContext, property: string | symbol): string {
  return `${context.getClass().name}.${String(property)}`;
}
