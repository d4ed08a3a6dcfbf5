import { HttpException } from '@nestjs/common';
import { defaultIfEmpty, defer, EMPTY, finalize, lastValueFrom, mergeMap, type Observable, of } from 'rxjs';
import type { Key } from '../../core/keys.js';
import type { Provenance } from '../../core/provenance.js';
import { addCacheStatus, addVary, type CacheStatus, setValidity } from './cache-headers.js';
import { detach } from './detached-response.js';
import { evictionKeyOf, generationOf } from './evict-by.js';
import {
  beforeHead,
  DETACHED,
  type HttpRequest,
  type HttpResponse,
  isAnswered,
  leftOn,
  listOf,
  whenOver,
} from './exchange.js';
import { hasIdentityWord, type Identity, identityHeaders, unnamedIdentity } from './identity.js';
import { loadResponse, staleWindowsOf, whyNotStored } from './load-response.js';
import { requestKey } from './request-key.js';
import type { RouteCall } from './route-call.js';
import {
  answerLike,
  type Before,
  before,
  bodyOf,
  forbidsSharing,
  isForOneClient,
  type RouteResponse,
  type SharedResponse,
  setsCookies,
  share,
  undo,
} from './shared-response.js';

/** Answers a request from the cache, or by its handler, and says in headers what was done. */
export function answerHttp(call: RouteCall): Observable<unknown> {
  const { context, next, route } = call;
  const request = context.switchToHttp().getRequest<HttpRequest>();
  const response = context.switchToHttp().getResponse<HttpResponse>();
  if (request.method !== 'GET' && request.method !== 'HEAD') return pass(call, response, { is: 'method' });

  const vary = variesBy(call, response);
  addVary(response, vary);
  const identity = identityHeaders(request);
  // Whoever says who asks may be answered otherwise than those who don't: caches in between must know.
  if (!route.isShared)
    addVary(response, ['Authorization', 'Cookie', ...identity.filter((name) => !CREDENTIALS.has(name))]);
  const why = whyNotShared(call, request, response, vary);
  if (why !== undefined) return pass(call, response, { is: 'bypass', why });
  const own = route.key?.(context);
  if (route.key && own === undefined) return pass(call, response, { is: 'bypass', why: 'key' });

  const eviction = evictionKeyOf(call);
  if (!eviction) return pass(call, response, { is: 'bypass', why: 'evictBy' });

  const shared = new SharedRequest(call, request, response, vary, identity);
  return defer(() => shared.answer(own, eviction.key)).pipe(
    mergeMap((answer) => answer ?? next.handle()),
    finalize(() => shared.leave()),
  );
}

/** What every response varies by. */
const CREDENTIALS = new Set(['authorization', 'cookie']);

/** The handler answers. */
function pass({ next, route, facts }: RouteCall, response: HttpResponse, status: CacheStatus): Observable<unknown> {
  if (!facts.sendsEvents && !isAnswered(response)) addCacheStatus(response, route.cache, status);
  return next.handle();
}

/** Of these, every response has its own headers, whatever the body is. */
const VARY_OF_MIDDLEWARE = new Set([
  'accept-encoding',
  'origin',
  'access-control-request-method',
  'access-control-request-headers',
]);

/** Where a response keeps what middleware says that it varies by. */
const TOLD = Symbol('stampede cache: vary of middleware');

/** The headers that belong to the key: what the route names, what its handler takes, what middleware says it looks at. */
function variesBy({ route, facts }: RouteCall, response: HttpResponse & { [TOLD]?: string[] }): ReadonlySet<string> {
  // Before we add to it: who asks again, after a failure, finds what we said.
  response[TOLD] ??= listOf(response.getHeader('vary')).filter((name) => !VARY_OF_MIDDLEWARE.has(name));
  return new Set([...route.vary, ...facts.headers, ...response[TOLD]]);
}

/** Why this request is for its handler, if it is. */
function whyNotShared(
  { route, facts, warn }: RouteCall,
  request: HttpRequest,
  response: HttpResponse,
  vary: ReadonlySet<string>,
): string | undefined {
  if (facts.sendsEvents) return 'server-sent events';
  if (facts.writesByItself) {
    warn('writes its responses by itself. Return the body, and take the response by @Res({ passthrough: true }).');
    return '@Res()';
  }
  if (forbidsSharing(response)) return 'cache-control';
  if (vary.has('*')) return 'vary';
  // A part is no answer to those who ask for all, and what a body asks for is in no key.
  if (request.headers['range'] !== undefined) return 'range';
  if (hasBody(request)) return 'request body';
  if (route.isShared || route.key) return undefined;
  if (facts.takesUnnamed !== undefined) {
    warn(`takes ${facts.takesUnnamed}. Take single headers by @Headers('name'), or say what it depends on: key.`);
    return facts.takesUnnamed;
  }
  if (setsCookies(response)) {
    warn('is answered with a cookie that was set before. Say who gets the same: shared: true, or key.');
    return 'set-cookie';
  }
  const identity = unnamedIdentity(request, { vary, query: route.query });
  return identity && nameOf(identity, warn);
}

/** What `Cache-Status` calls it. Its author may not know of some. */
function nameOf(identity: Identity, warn: RouteCall['warn']): string {
  switch (identity.is) {
    case 'header':
      if (!hasIdentityWord(identity.name)) warn(unknownHeader(identity.name), 'a header');
      return identity.name;
    case 'parameter':
      return `query: ${identity.name}`;
    case 'session':
      warn('its requests have a session, which is for one client. Say who gets the same: shared: true, or key.');
      return 'session';
    default:
      return identity.is;
  }
}

function unknownHeader(name: string): string {
  const header = name.slice(0, 100);
  return (
    `its requests have the header ${header}, of which nobody knows whether it says who asks, so these are not cached. ` +
    `Where the answer depends on it, name it: vary: ['${header}']. Otherwise say who gets the same: shared: true, or key.`
  );
}

function hasBody({ headers }: HttpRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** What the handler's run for this very request came to. */
type OwnRun = { readonly body: unknown; readonly shared: RouteResponse } | { readonly error: unknown };

/** A request whose answer may be others' as well. */
class SharedRequest {
  readonly #call: RouteCall;
  readonly #request: HttpRequest;
  readonly #response: HttpResponse;
  readonly #vary: ReadonlySet<string>;
  /** The headers by which it says who asks. */
  readonly #identity: readonly string[];
  readonly #before: Before;
  /** Where the answer comes from, once it is there. */
  #provenance: Provenance | undefined;
  #runs = 0;
  #own: OwnRun | undefined;
  #isLeft = false;
  /** Settles when the handler can no longer be seen to write to a response that is answered otherwise. */
  #detached: Promise<void> | undefined;

  constructor(
    call: RouteCall,
    request: HttpRequest,
    response: HttpResponse,
    vary: ReadonlySet<string>,
    identity: readonly string[],
  ) {
    this.#call = call;
    this.#request = request;
    this.#response = response;
    this.#vary = vary;
    this.#identity = identity;
    this.#before = before(response, leftOn(request, 'session'));
  }

  /** `undefined` when what was found is for somebody else. */
  async answer(own: Key | undefined, evictionKey: string | undefined): Promise<Observable<unknown> | undefined> {
    const { route, facts } = this.#call;
    const { handler } = facts;
    const generation = await generationOf(this.#call, evictionKey);
    const key = requestKey(this.#request, {
      handler,
      query: route.query,
      vary: this.#vary,
      identity: this.#identity,
      own,
      generation,
    });
    const reload = route.clientMayRefresh && asksForReload(this.#request);
    const found = await loadResponse(this.#call, key, () => this.#run(), {
      reload,
      told: (provenance) => this.#tell(provenance),
    });
    if (this.#isLeft) return EMPTY;
    // What this request's own handler made is answered as it is: a serializer outside may want to know its classes.
    if (this.#own) return this.#answerOwn(this.#own, reload);
    if ('isPrivate' in found) {
      addCacheStatus(this.#response, route.cache, { is: 'bypass', why: 'private' });
      return undefined;
    }
    answerLike(found, this.#response);
    this.#describe(found, this.#provenance ?? { is: 'hit', left: undefined });
    return of(bodyOf(found));
  }

  #answerOwn(own: OwnRun, reload: boolean): Observable<unknown> {
    if ('error' in own) throw own.error;
    if (isAnswered(this.#response)) return of(own.body);
    if ('isPrivate' in own.shared) {
      addCacheStatus(this.#response, this.#call.route.cache, { is: 'bypass', why: 'private' });
    } else {
      const { stored } = this.#provenance?.is === 'load' ? this.#provenance : { stored: undefined };
      this.#describe(own.shared, { is: 'own', stored, reload });
    }
    return of(own.body);
  }

  /** Runs the handler, and says what others may get of it. */
  async #run(): Promise<RouteResponse> {
    const { next, route, warn, access } = this.#call;
    const isBackground = this.#isLeft || this.#provenance !== undefined;
    if (isBackground) {
      await whenOver(this.#response);
      detach(this.#response, this.#before);
    }
    this.#runs += 1;
    try {
      const body = await lastValueFrom(next.handle().pipe(defaultIfEmpty(undefined)));
      await this.#detached;
      const { headers } = route;
      const session = leftOn(this.#request, 'session');
      const shared: RouteResponse = isAnswered(this.#response)
        ? { isPrivate: true }
        : share(body, this.#response, this.#before, {
            headers,
            vary: this.#vary,
            session,
            whyNotStored: (inner) => whyNotStored(this.#call, inner),
            warn,
          });
      const timed = 'isPrivate' in shared ? shared : route.keepingIn(access.cache).withTtl(shared, body);
      if (!this.#isAnsweredOtherwise) this.#own = { body, shared: timed };
      return timed;
    } catch (error) {
      if (!(error instanceof HttpException) || !isForOneClient(error.getStatus())) throw error;
      if (!this.#isAnsweredOtherwise) this.#own = { error };
      return { isPrivate: true };
    } finally {
      this.#runs -= 1;
    }
  }

  get #isAnsweredOtherwise(): boolean {
    return this.#isLeft || (this.#provenance !== undefined && this.#provenance.is !== 'load');
  }

  /** It has been answered, or whoever asked for the answer has given up, as a time limit outside does. */
  leave(): void {
    this.#isLeft = true;
    if (this.#runs > 0) this.#leaveRunning();
  }

  #tell(provenance: Provenance): void {
    if (this.#provenance) return;
    this.#provenance = provenance;
    if (this.#runs > 0 && provenance.is !== 'load') this.#leaveRunning();
  }

  /** The handler is at work on this response, but an old one is answered, or an error, since it takes too long. */
  #leaveRunning(): void {
    if (this.#detached) return;
    const soFar = before(this.#response, undefined);
    undo(this.#response, this.#before);
    this.#detached = new Promise((resolve) => {
      const detachOnce = () => {
        resolve();
        if (DETACHED in this.#response) return;
        // What the handler has set meanwhile is on this response, and can't be told from the rest that is.
        const isPersonal = setsCookies(this.#response) || forbidsSharing(this.#response);
        detach(this.#response, isPersonal ? { ...soFar, headers: { 'cache-control': 'private' } } : soFar);
      };
      beforeHead(this.#response, () => queueMicrotask(detachOnce));
      void whenOver(this.#response).then(detachOnce);
    });
  }

  #describe(shared: SharedResponse, status: Exclude<CacheStatus, { is: 'bypass' | 'method' }>): void {
    const { route } = this.#call;
    addCacheStatus(this.#response, route.cache, status);
    if (!shared.ttl || isNotStored(status)) return;
    setValidity(this.#response, {
      ttl: status.is === 'own' ? (status.stored ?? shared.ttl) : shared.ttl,
      age: ageOf(shared.ttl, status),
      ...staleWindowsOf(this.#call),
      // It is told apart from others by more than caches in between know.
      isPrivate: !route.isShared && (route.key !== undefined || this.#identity.length > 0),
      cacheControl: route.cacheControl,
    });
  }
}

/** It may have been meant to be, and the store didn't take it. */
function isNotStored(status: CacheStatus): boolean {
  return status.is === 'kept' || ((status.is === 'own' || status.is === 'load') && status.stored === undefined);
}

/** Milliseconds since the response was made; `undefined` when it was made for this request. */
function ageOf(ttl: number, status: Exclude<CacheStatus, { is: 'bypass' | 'method' }>): number | undefined {
  if (status.is === 'hit') return status.left === undefined ? 0 : Math.max(0, ttl - status.left);
  if (status.is === 'stale') return ttl + status.since;
  return undefined;
}

/** RFC 9111, section 5.2.1, and `Pragma` (5.4) where there is nothing else. */
function asksForReload({ headers }: HttpRequest): boolean {
  const asked = listOf(headers['cache-control'] ?? headers['pragma']);
  return asked.includes('no-cache') || asked.some((directive) => /^max-age\s*=\s*"?0+"?$/.test(directive));
}
