import 'reflect-metadata';
import {
  type CallHandler,
  type ExecutionContext,
  Inject,
  Injectable,
  type NestInterceptor,
  type Type,
} from '@nestjs/common';
import type { Observable } from 'rxjs';
import type { CacheAccess } from '../cache-access.js';
import { cacheAccessToken } from '../tokens.js';
import { answerHttp } from './answer-http.js';
import { answerMessage } from './answer-message.js';
import { CACHED_ROUTE, type CachedRoute } from './cache-response-options.js';
import type { RouteCall } from './route-call.js';
import { factsOf, type RouteFacts } from './route-metadata.js';

/** Marks a call that one of our interceptors has. A second one would wait for the first, which waits for it. */
const TAKEN = Symbol('stampede cache: call taken');

/** Clients may send any number of others. */
const MOST_HEADERS_SAID = 10;

type TakableContext = ExecutionContext & { [TAKEN]?: true };

/**
 * Answers requests of handlers that have `@CacheResponse()` from the cache. That decorator applies it; apply it globally as
 * well, as the first `APP_INTERCEPTOR`, to store what other global interceptors make of a body.
 */
@Injectable()
export class CacheAsideInterceptor implements NestInterceptor {
  /** The name of its cache; others answer the routes of others. */
  readonly #cache: string | undefined;
  readonly #access: CacheAccess;
  readonly #facts = new WeakMap<object, Map<object, RouteFacts>>();
  /** What has been said of which handler. */
  readonly #warned = new Set<string>();
  /** Of how many headers that clients have sent, by handler. */
  readonly #headersSaid = new Map<string, number>();

  /** @internal */
  constructor(@Inject(cacheAccessToken()) access: CacheAccess) {
    this.#access = access;
    this.#cache = (this.constructor as { [CACHE]?: string })[CACHE];
  }

  async intercept(context: TakableContext, next: CallHandler): Promise<Observable<unknown>> {
    const route = routeOf(context);
    if (!route || route.cache !== this.#cache || context[TAKEN]) return next.handle();
    context[TAKEN] = true;
    const facts = this.#factsOf(context);
    const warn: RouteCall['warn'] = (what, kind) => this.#warn(facts.name, what, kind);
    const call: RouteCall = { context, next, route, facts, access: this.#access, warn };
    return context.getType() === 'http' ? answerHttp(call) : answerMessage(call);
  }

  #factsOf(context: ExecutionContext): RouteFacts {
    const [controller, handler] = [context.getClass(), context.getHandler()];
    const known = this.#facts.get(controller) ?? new Map<object, RouteFacts>();
    this.#facts.set(controller, known);
    const facts = known.get(handler) ?? factsOf(controller, handler);
    known.set(handler, facts);
    return facts;
  }

  #warn(name: string, what: string, kind: 'a header' | undefined): void {
    const line = `${name} has @CacheResponse(), but ${what}`;
    if (this.#warned.has(line)) return;
    if (kind) {
      const said = this.#headersSaid.get(name) ?? 0;
      if (said === MOST_HEADERS_SAID) return;
      this.#headersSaid.set(name, said + 1);
    }
    this.#warned.add(line);
    this.#access.logger.warn(line);
  }
}

/** Where the class of a named cache's interceptor keeps the name. */
const CACHE = Symbol('stampede cache: name');

/** The interceptor of the cache that was registered under a name. */
export function interceptorOf(cache: string | undefined): Type<CacheAsideInterceptor> {
  if (cache === undefined) return CacheAsideInterceptor;
  @Injectable()
  class NamedCacheAsideInterceptor extends CacheAsideInterceptor {
    static readonly [CACHE] = cache;
    constructor(@Inject(cacheAccessToken(cache)) access: CacheAccess) {
      super(access);
    }
  }
  return NamedCacheAsideInterceptor;
}

/** What the handler says, or else its controller. */
function routeOf(context: ExecutionContext): CachedRoute | undefined {
  const route: CachedRoute | false | undefined =
    Reflect.getMetadata(CACHED_ROUTE, context.getHandler()) ?? Reflect.getMetadata(CACHED_ROUTE, context.getClass());
  return route || undefined;
}
