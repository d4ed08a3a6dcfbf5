import type { HttpResponse } from './http.js';
import { whyNotPlain } from './plain-body.js';

/** What a handler answered, as others may get it. */
export interface SharedResponse {
  readonly status: number;
  /** The `Content-Type`, if the handler has set one. */
  readonly type?: string | undefined;
  readonly body?: unknown;
}

/** What is said of an answer that is for nobody else. */
export interface PrivateResponse {
  readonly isPrivate: true;
}

export type RouteResponse = SharedResponse | PrivateResponse;

/** What the handler's run is told apart by from what middleware did to every response before. */
export interface Before {
  readonly type: string;
  readonly cookies: string;
  readonly vary: string;
}

export function before(response: HttpResponse): Before {
  return {
    type: headerOf(response, 'content-type'),
    cookies: headerOf(response, 'set-cookie'),
    vary: headerOf(response, 'vary'),
  };
}

/**
 * What others may get of a response whose handler has run.
 *
 * @param warn is told why a body can't be shared, because that is for the handler's author to change
 */
export function share(body: unknown, response: HttpResponse, then: Before, warn: (why: string) => void): RouteResponse {
  const now = before(response);
  // Set for this client, or by what it asked for beside the URL.
  const isPersonal = now.cookies !== then.cookies || now.vary !== then.vary;
  if (isPersonal || /private|no-store|no-cache/i.test(headerOf(response, 'cache-control'))) return { isPrivate: true };
  const why = whyNotPlain(body);
  if (why !== undefined) {
    warn(why);
    return { isPrivate: true };
  }
  return { status: response.statusCode, type: now.type === then.type ? undefined : now.type, body };
}

/** Whether it is to be stored: a success, and all of it. */
export function isStorable({ status }: SharedResponse): boolean {
  return status >= 200 && status < 300 && status !== 206;
}

/** Makes a response like the one that was shared, all but its body, which Nest sends. */
export function answerLike({ status, type }: SharedResponse, response: HttpResponse): void {
  if (response.statusCode !== status) response.status(status);
  if (type !== undefined) response.header('content-type', type);
}

function headerOf(response: HttpResponse, name: string): string {
  return String(response.getHeader(name) ?? '');
}
