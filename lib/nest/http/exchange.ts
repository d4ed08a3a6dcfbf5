/** What Express 5's and Fastify 5's requests have in common, as far as it is used here. */
export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  /** The URL as it was asked for, whatever a router made of `url`. */
  readonly originalUrl?: string;
  /** The host that was asked for, with its port. */
  readonly host?: string;
  readonly protocol?: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** As the framework's parser reads it. */
  readonly query?: unknown;
  /** What an authentication guard, or a middleware, leaves here. */
  readonly user?: unknown;
  readonly auth?: unknown;
  readonly session?: unknown;
  /** Fastify: Node's own, which is the one that Nest's middleware gets. */
  readonly raw?: Pick<HttpRequest, 'user' | 'auth' | 'session'>;
  readonly socket?: { readonly localPort?: number | undefined; getPeerCertificate?(): object };
}

/** What was left on a request under a name, and on the one behind it. */
export function leftOn(request: HttpRequest, name: 'user' | 'auth' | 'session'): unknown[] {
  return [request[name], request.raw?.[name]].filter((left) => left !== undefined && left !== null && left !== false);
}

export type HeaderValue = string | number | readonly string[];

/** The same of their responses. */
export interface HttpResponse {
  statusCode: number;
  status(code: number): unknown;
  getHeader(name: string): HeaderValue | undefined;
  getHeaders(): Readonly<Record<string, HeaderValue | undefined>>;
  removeHeader(name: string): unknown;
  /** Express: sets it as it is; its `header` adds a charset. */
  setHeader?(name: string, value: HeaderValue): unknown;
  /** Fastify: the same. */
  header(name: string, value: HeaderValue): unknown;
  /** Express: whether the response has begun. */
  readonly headersSent?: boolean;
  /** Fastify: whether it is over, or the handler has said that it would write by itself. */
  readonly sent?: boolean;
  /** Fastify: Node's own. */
  readonly raw?: NodeResponse;
}

/** What Node's HTTP/1 and HTTP/2 responses have in common. */
export interface NodeResponse {
  readonly headersSent: boolean;
  readonly writableFinished: boolean;
  readonly closed: boolean;
  /** HTTP/2's. */
  readonly stream?: { readonly closed: boolean };
  writeHead(status: number, ...rest: unknown[]): unknown;
  setHeader(name: string, ...value: unknown[]): unknown;
  appendHeader?(name: string, ...value: unknown[]): unknown;
  once(event: 'finish' | 'close', listener: () => void): unknown;
}

export function isFastify(response: HttpResponse): boolean {
  return response.raw !== undefined;
}

export function nodeResponseOf(response: HttpResponse): NodeResponse {
  return response.raw ?? (response as unknown as NodeResponse);
}

/** Marks a response that has been sent, and can be written to nonetheless. */
export const DETACHED = Symbol('stampede cache: response detached');

/** Whether the handler answers, or has answered, by itself. */
export function isAnswered(response: HttpResponse): boolean {
  if (response.headersSent === true || response.sent === true) return true;
  return response.raw?.headersSent === true && !(DETACHED in response);
}

export function setHeader(response: HttpResponse, name: string, value: HeaderValue): void {
  if (response.setHeader) response.setHeader(name, value);
  else response.header(name, value);
}

export function headerOf(response: HttpResponse, name: string): string {
  return textOf(response.getHeader(name));
}

export function textOf(value: HeaderValue | undefined): string {
  return Array.isArray(value) ? value.join(', ') : String(value ?? '');
}

/** The elements of a header that is a list, in lower case. */
export function listOf(value: HeaderValue | undefined): string[] {
  return textOf(value)
    .toLowerCase()
    .split(',')
    .map((element) => element.trim())
    .filter((element) => element !== '');
}

/** Calls `edit` with the status, just before the head of the response is written; headers may still be changed then. */
export function beforeHead(response: HttpResponse, edit: (status: number) => void): void {
  const node = nodeResponseOf(response);
  const { writeHead } = node;
  let isDone = false;
  // What compression and session middleware do: Node has no event for it, and both frameworks come by here.
  node.writeHead = function (this: NodeResponse, status, ...rest) {
    if (!isDone) {
      isDone = true;
      edit(status);
    }
    return writeHead.call(this, status, ...rest);
  };
}

/** Calls `then` each time a cookie is set on Node's response, also while its head is written: that is when sessions do it. */
export function whenCookieIsSet(response: HttpResponse, then: () => void): void {
  const node = nodeResponseOf(response);
  for (const method of ['setHeader', 'appendHeader'] as const) {
    const original = node[method];
    if (!original) continue;
    node[method] = function (this: NodeResponse, name, ...value) {
      const result = original.call(this, name, ...value);
      if (name.toLowerCase() === 'set-cookie') then();
      return result;
    };
  }
}

/** Resolves when the response has been sent, or its client is gone. */
export function whenOver(response: HttpResponse): Promise<void> {
  const node = nodeResponseOf(response);
  if (node.writableFinished || node.closed || node.stream?.closed) return Promise.resolve();
  return new Promise((resolve) => {
    node.once('finish', resolve);
    node.once('close', resolve);
  });
}
