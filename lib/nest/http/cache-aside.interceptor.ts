import 'reflect-metadata';
import {
  type CallHandler,
  type ExecutionContext,
  Inject,
  Injectable,
  type NestInterceptor,
  type Type,
} from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { defer, finalize, type Observable } from 'rxjs';
import type { CacheAccess } from '../cache-access.js';
import { cacheAccessToken } from '../tokens.js';
import { answerHttp } from './answer-http.js';
import { answerMessage } from './answer-message.js';
import { CACHED_ROUTE, type CachedRoute } from './cache-response-options.js';
import type { RouteCall } from './route-call.js';
import { factsOf, type RouteFacts } from './route-metadata.js';

/** How many runs of its handler one of our interceptors has begun: inside of those, a second one would wait for the first. */
const RUNS = Symbol('stampede cache: runs');

/** Clients may send any number of others. */
const MOST_HEADERS_SAID = 10;

type RunningContext = ExecutionContext & { [RUNS]?: number };

/**
 * Answers requests of handlers that have `@CacheResponse()` from the cache. That decorator applies it; apply it globally as
 * well, as the first `APP_INTERCEPTOR`, to store what other global interceptors make of a body.
 */
@Injectable()
export class CacheAsideInterceptor implements NestInterceptor {
  /** The name of its cache; others answer the routes of others. */
  readonly #cache: string | undefined;
  readonly #access: CacheAccess;
  readonly #modules: ModulesContainer;
  /** Of the handlers of each controller; `undefined` for one that another interceptor answers. */
  readonly #facts = new WeakMap<object, Map<object, RouteFacts> | undefined>();
  /** What has been said of which handler. */
  readonly #warned = new Set<string>();
  /** Of how many headers that clients have sent, by handler. */
  readonly #headersSaid = new Map<string, number>();

  /** @internal */
  constructor(@Inject(cacheAccessToken()) access: CacheAccess, @Inject(ModulesContainer) modules: ModulesContainer) {
    this.#access = access;
    this.#modules = modules;
    this.#cache = (this.constructor as { [CACHE]?: string })[CACHE];
  }

  async intercept(context: RunningContext, next: CallHandler): Promise<Observable<unknown>> {
    const route = routeOf(context);
    if (!route || route.cache !== this.#cache || context[RUNS]) return next.handle();
    const facts = this.#factsOf(context);
    if (!facts) return next.handle();
    const warn: RouteCall['warn'] = (what, kind) => this.#warn(facts.name, what, kind);
    const call: RouteCall = { context, next: counting(context, next), route, facts, access: this.#access, warn };
    return context.getType() === 'http' ? answerHttp(call) : answerMessage(call);
  }

  #factsOf(context: ExecutionContext): RouteFacts | undefined {
    const [controller, handler] = [context.getClass(), context.getHandler()];
    if (!this.#facts.has(controller)) this.#facts.set(controller, this.#isFor(controller) ? new Map() : undefined);
    const known = this.#facts.get(controller);
    if (!known) return undefined;
    const facts = known.get(handler) ?? factsOf(controller, handler);
    known.set(handler, facts);
    return facts;
  }

  /**
   * A controller's module may have a cache for itself, which its evictions go to: then one that is applied globally leaves its
   * routes to the interceptor that each has in that module. Of one that is made anew for each request Nest keeps only an
   * object without fields.
   */
  #isFor(controller: Type): boolean {
    const own = [...this.#modules.values()]
      .filter(({ controllers, providers }) => controllers.has(controller) || providers.has(controller))
      .flatMap(({ injectables }) => [...injectables.values()].map(({ instance }): unknown => instance))
      .filter((each): each is CacheAsideInterceptor => #cache in Object(each))
      .filter((each) => each.#cache === this.#cache);
    return own.includes(this) || own.every((each) => each.#access === this.#access);
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

/** An interceptor outside may ask again, after a failure: that is no call inside of ours, and is ours as well. */
function counting(context: RunningContext, next: CallHandler): CallHandler {
  const add = (runs: number) => {
    context[RUNS] = (context[RUNS] ?? 0) + runs;
  };
  return {
    handle: () =>
      defer(() => {
        add(1);
        return next.handle();
      }).pipe(finalize(() => add(-1))),
  };
}

/** Where the class of a named cache's interceptor keeps the name. */
const CACHE = Symbol('stampede cache: name');

/** The interceptor of the cache that was registered under a name. */
export function interceptorOf(cache: string | undefined): Type<CacheAsideInterceptor> {
  if (cache === undefined) return CacheAsideInterceptor;
  @Injectable()
  class NamedCacheAsideInterceptor extends CacheAsideInterceptor {
    static readonly [CACHE] = cache;
    constructor(
      @Inject(cacheAccessToken(cache)) access: CacheAccess,
      @Inject(ModulesContainer) modules: ModulesContainer,
    ) {
      super(access, modules);
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
