import { type HeaderValue, type HttpResponse, headerOf, listOf, setHeader, textOf } from './exchange.js';

/** What a handler answered, as others may get it. */
export interface SharedResponse {
  readonly status: number;
  /** Those that the handler, or an interceptor inside, has set and that may be stored, by name in lower case. */
  readonly headers?: Readonly<Record<string, HeaderValue>>;
  readonly body?: unknown;
  /** The body is bytes, written here as base64. */
  readonly isBinary?: true;
  /** How long it is fresh, in milliseconds; left out when it isn't to be stored. */
  readonly ttl?: number;
}

/** What is said of an answer that is for nobody else. */
export interface PrivateResponse {
  readonly isPrivate: true;
}

export type RouteResponse = SharedResponse | PrivateResponse;

/** What a handler's run is told apart by from what middleware did to every response before. */
export interface Before {
  readonly status: number;
  readonly headers: Readonly<Record<string, HeaderValue | undefined>>;
  /** Cookies and sessions that are only written when the response is. */
  readonly later: string;
}

export function before(response: HttpResponse, session: unknown): Before {
  return {
    status: response.statusCode,
    headers: copyOf(response.getHeaders()),
    later: writtenLater(response, session),
  };
}

/** What is stored of a response's headers, unless the route names more. */
export const STORED_HEADERS = [
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-type',
  'etag',
  'expires',
  'last-modified',
  'link',
  'location',
] as const;

/** What nobody misses in a hit: it is made anew for every response, or belongs to one connection. */
const MADE_ANEW =
  /^(?:age|cache-status|connection|content-length|date|keep-alive|server-timing|transfer-encoding|vary|access-control-.*)$/;

const CORS = 'access-control-';

/** Of what the handler says of origins, what holds for each. */
function isSameForAll(name: string, value: HeaderValue | undefined): boolean {
  return name === 'access-control-allow-origin' && textOf(value) === '*';
}

/** Answers that are for one client, even without a word of who it is: parts, changes since its last one, refusals, limits. */
const FOR_ONE_CLIENT = new Set([206, 226, 304, 401, 403, 407, 412, 416, 429]);

export function isForOneClient(status: number): boolean {
  return FOR_ONE_CLIENT.has(status);
}

/** Whether a response says that it is to be kept from others, or from being stored. */
export function forbidsSharing(response: HttpResponse): boolean {
  return /\b(?:private|no-store|no-cache)\b/i.test(headerOf(response, 'cache-control'));
}

export interface Sharing {
  /** The names of headers that may be stored, in lower case. */
  readonly headers: ReadonlySet<string>;
  /** The request's headers that are part of the key, in lower case. */
  readonly vary: ReadonlySet<string>;
  readonly session: unknown;
  /** Says why a body can't be stored, if so. */
  whyNotStored(body: unknown): string | undefined;
  /** Is told what the handler's author may change. */
  warn(what: string): void;
}

/** What others may get of a response whose handler has run. */
export function share(body: unknown, response: HttpResponse, then: Before, sharing: Sharing): RouteResponse {
  const { headers: allowed, vary, session, warn } = sharing;
  const changed = changesOf(response.getHeaders(), then.headers);
  const isPersonal = changed['set-cookie'] !== undefined || writtenLater(response, session) !== then.later;
  if (isPersonal || forbidsSharing(response) || isForOneClient(response.statusCode)) return { isPrivate: true };

  const cors = Object.keys(changed).filter((name) => name.startsWith(CORS) && !isSameForAll(name, changed[name]));
  if (cors.length > 0) {
    warn(`sets ${cors.join(', ')}, which may be for one origin only. Leave that to app.enableCors().`);
    return { isPrivate: true };
  }
  const unnamed = listOf(changed['vary']).filter(
    (name) => !vary.has(name) && !listOf(then.headers['vary']).includes(name),
  );
  if (unnamed.length > 0) {
    warn(`answers with Vary: ${unnamed.join(', ')}. Name what it varies by: vary: ['${unnamed.join("', '")}'].`);
    return { isPrivate: true };
  }
  const isBinary = Buffer.isBuffer(body);
  const why = isBinary ? undefined : sharing.whyNotStored(body);
  if (why !== undefined) {
    warn(
      `answers with ${why}, and only plain data is stored. Return plain data (a date as a text), or choose a codec that knows it. ` +
        'Where a serializer makes it plain, put that inside: @UseInterceptors(ClassSerializerInterceptor) above ' +
        '@CacheResponse(), or CacheAsideInterceptor as the first APP_INTERCEPTOR.',
    );
    return { isPrivate: true };
  }
  const lost = Object.keys(changed).filter((name) => !allowed.has(name) && !MADE_ANEW.test(name));
  if (lost.length > 0) {
    warn(
      `sets ${lost.join(', ')}, which stored answers don't have. Name what they need: headers: ['${lost.join("', '")}'].`,
    );
  }
  const headers = Object.fromEntries(
    Object.entries(changed).filter(([name, value]) => allowed.has(name) || isSameForAll(name, value)),
  );
  return {
    status: response.statusCode,
    ...(Object.keys(headers).length > 0 && { headers }),
    body: isBinary ? body.toString('base64') : body,
    ...(isBinary && { isBinary }),
  };
}

/** Whether it is to be stored: a success, and all of it. */
export function isStorable(response: RouteResponse): response is SharedResponse {
  return !('isPrivate' in response) && response.status >= 200 && response.status < 300;
}

export function bodyOf({ body, isBinary }: SharedResponse): unknown {
  return isBinary ? Buffer.from(String(body), 'base64') : body;
}

/** Makes a response like the one that was shared, all but its body, which Nest sends. */
export function answerLike({ status, headers = {} }: SharedResponse, response: HttpResponse): void {
  if (response.statusCode !== status) response.status(status);
  for (const [name, value] of Object.entries(headers)) setHeader(response, name, value);
}

/** Makes a response again what it was before a handler's run. */
export function undo(response: HttpResponse, { status, headers }: Before): void {
  response.status(status);
  for (const name of Object.keys(response.getHeaders())) if (headers[name] === undefined) response.removeHeader(name);
  for (const [name, value] of Object.entries(changesOf(headers, response.getHeaders()))) {
    response.removeHeader(name);
    setHeader(response, name, value);
  }
}

type Headers = Readonly<Record<string, HeaderValue | undefined>>;

function changesOf(now: Headers, then: Headers): Record<string, HeaderValue> {
  const changes: Record<string, HeaderValue> = {};
  for (const [name, value] of Object.entries(now)) {
    if (value !== undefined && textOf(value) !== textOf(then[name])) changes[name.toLowerCase()] = value;
  }
  return changes;
}

/** Frameworks hand out lists that grow. */
function copyOf(headers: Headers): Headers {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? [...value] : value]),
  );
}

/** Whether the response sets a cookie already, or will when it is sent. */
export function setsCookies(response: HttpResponse): boolean {
  return headerOf(response, 'set-cookie') !== '' || cookiesKept(response).some((cookies) => cookies.length > 0);
}

/** A session's content, and cookies: headers don't show them yet. */
function writtenLater(response: HttpResponse, session: unknown): string {
  try {
    return JSON.stringify([session, cookiesKept(response)]) ?? '';
  } catch {
    // A session that can't be told from a changed one counts as changed.
    return `${Math.random()}`;
  }
}

/** Those that @fastify/cookie keeps until the response is sent. */
function cookiesKept(response: HttpResponse): unknown[][] {
  return Object.getOwnPropertySymbols(response)
    .filter((symbol) => /cookie/i.test(symbol.description ?? ''))
    .map((symbol) => (response as unknown as Record<symbol, unknown>)[symbol])
    .filter((kept) => kept instanceof Map)
    .map((kept) => [...kept.entries()]);
}
