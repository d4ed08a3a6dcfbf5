import { createHash } from 'node:crypto';
import { composeKey, type Key } from '../../core/keys.js';
import type { HttpRequest } from './exchange.js';

/** What belongs to the key beside the URL. */
export interface KeyParts {
  /** The class, the method and its version, where several have the same URL: `ProductsController.find`. */
  readonly handler: string;
  /** The query's parameters that count; all if left out. */
  readonly query: readonly string[] | undefined;
  /** The request's headers that do, in lower case. */
  readonly vary: ReadonlySet<string>;
  /** Those of them that say who asks: their values are written as hashes, since keys are seen in logs. */
  readonly identity?: readonly string[];
  /** What the user's own function says. */
  readonly own: Key | undefined;
  /** What changes when answers are evicted. */
  readonly generation?: string | undefined;
}

/**
 * The key of what a handler answers: method, host, handler, path, query, headers, and what the user adds. Two requests that
 * differ in any of these have different keys; that of parameters of the query is no difference.
 */
export function requestKey(
  request: HttpRequest,
  { handler, query, vary, identity = [], own, generation = '' }: KeyParts,
): string {
  const parts = [
    request.method,
    splitHost(request.host)[0],
    handler,
    pathOf(request),
    queryOf(request, query),
    composed([...vary].sort().flatMap((name) => [name, told(textOf(request.headers[name]), identity.includes(name))])),
    composed(siteOf(request)),
    own === undefined ? '' : composeKey(own, `The key that the 'key' function of ${handler}'s @CacheResponse returned`),
    generation,
  ];
  while (parts.at(-1) === '') parts.pop();
  return composeKey(parts);
}

/** The path as it was asked for, and what a middleware has made of it: that is what parameters are taken from. */
function pathOf({ url, originalUrl = url }: HttpRequest): string {
  const [path, search] = splitUrl(originalUrl);
  const [innerPath, innerSearch] = splitUrl(url);
  // No URL has a space in it.
  if (innerSearch !== search) return `${path} ${url}`;
  return innerPath === path ? path : `${path} ${innerPath}`;
}

/**
 * What a handler makes links of, and proxies tell it by: attackers set these headers to have theirs served to others.
 *
 * @see https://portswigger.net/web-security/web-cache-poisoning on headers that are not part of a key
 */
const SITE =
  /^(?:x-)?(?:host|forwarded|original|rewrite|url)(?:-(?:host|proto|protocol|port|prefix|scheme|server|ssl|path|uri|url))?$/;

/** By these, versions of an API are told apart. */
const VERSION = /^(?:x-)?(?:api-)?version$|^accept-version$/;

/** Whether a header, its name in lower case, is part of the key for every route. */
export function isAlwaysInKey(name: string): boolean {
  return SITE.test(name) || VERSION.test(name);
}

function siteOf({ protocol, host, headers, socket }: HttpRequest): string[] {
  const site = protocol === undefined || protocol === 'http' ? [] : ['@protocol', protocol];
  const [, port] = splitHost(host);
  // Processes that listen on ports of their own share what is asked of those.
  if (port !== undefined) site.push('@port', port === String(socket?.localPort) ? 'own' : port);
  // HTTP/2's, which a client may send beside a Host.
  const authority = headers[':authority'];
  if (typeof authority === 'string' && authority !== host) site.push('@authority', authority);
  for (const name of Object.keys(headers).sort()) {
    if (name === 'host' || !isAlwaysInKey(name)) continue;
    const value = textOf(headers[name]) ?? '';
    const told = name === 'forwarded' ? withoutAddresses(value) : value;
    if (told !== '') site.push(name, told);
  }
  return site;
}

/** RFC 7239's `for` and `by` differ with each client. Whatever else it has, or looks like it, counts. */
function withoutAddresses(forwarded: string): string {
  return forwarded
    .split(/[;,]/)
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '' && !/^(?:for|by)=/i.test(pair))
    .join(';');
}

/** From this many on, parsers leave parameters out by their number, so that their order matters after all. */
const MOST_SORTED = 100;

function splitHost(host = ''): [name: string, port?: string] {
  const [, name = host, port] = /^(.*):(\d+)$/.exec(host) ?? [];
  return port === undefined ? [name] : [name, port];
}

function queryOf(request: HttpRequest, allowed: readonly string[] | undefined): string {
  if (allowed) return allowedQuery(request, allowed);
  const parameters = parametersOf(request);
  return (parameters.length < MOST_SORTED ? sorted(parameters) : parameters).map(({ text }) => text).join('&');
}

/**
 * Of some parameters, what the handler sees counts, which only the framework's parser knows: `[page]=2` may be a `page`, and
 * a `page` behind a thousand others none.
 */
function allowedQuery(request: HttpRequest, allowed: readonly string[]): string {
  const query = request.query;
  if (typeof query !== 'object' || query === null) {
    return sorted(parametersOf(request).filter(({ name }) => allowed.includes(name)))
      .map(({ text }) => text)
      .join('&');
  }
  const seen = [...allowed].sort().flatMap((name) => {
    const value = (query as Record<string, unknown>)[name];
    if (value === undefined) return [];
    // `null` tells the text of an array from a text.
    return typeof value === 'string' ? [name, value] : [name, null, JSON.stringify(canonical(value))];
  });
  return composed(seen);
}

function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([left], [right]) => compare(left, right));
  return Object.fromEntries(entries.map(([name, inner]) => [name, canonical(inner)]));
}

interface Parameter {
  readonly text: string;
  /** Decoded, and without what a parser takes for a path into an object. */
  readonly name: string;
}

/** The names of the query's parameters, as far as they can be told without the framework's parser. */
export function parameterNames(request: HttpRequest): string[] {
  return parametersOf(request).map(({ name }) => name);
}

function parametersOf({ url, originalUrl = url }: HttpRequest): Parameter[] {
  const [, search] = splitUrl(originalUrl);
  return search
    .split('&')
    .filter((text) => text !== '')
    .map((text) => ({ text, name: nameOf(text) }));
}

/**
 * By name, and each parameter's text as it is: what was decoded could be the same for two that are not. A parser takes
 * `a[]`, `a[0]`, `[a]` and an encoded `%61` for values of one `a`, so these keep their order.
 */
function sorted(parameters: readonly Parameter[]): Parameter[] {
  return [...parameters].sort((left, right) => compare(left.name, right.name));
}

function nameOf(parameter: string): string {
  const [encoded = ''] = parameter.split('=', 1);
  const [name = ''] = decode(encoded)
    .replace(/^[[?]+/, '')
    .split(/[[\].]/, 1);
  return name;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return text;
  }
}

function compare(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

function splitUrl(url: string): [path: string, search: string] {
  const at = url.indexOf('?');
  return at < 0 ? [url, ''] : [url.slice(0, at), url.slice(at + 1)];
}

/** Several texts as one, which no others give. */
function composed(texts: readonly (string | null | undefined)[]): string {
  return texts.length === 0 ? '' : composeKey(texts);
}

function told(value: string | undefined, isSecret: boolean): string | undefined {
  return isSecret && value ? createHash('sha256').update(value).digest('base64url') : value;
}

function textOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? JSON.stringify(value) : value;
}
