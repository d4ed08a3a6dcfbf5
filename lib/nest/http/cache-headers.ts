import type { Provenance } from '../../core/provenance.js';
import { beforeHead, type HttpResponse, headerOf, listOf, setHeader, whenCookieIsSet } from './exchange.js';

/** What a response tells caches in between of how long it is good, and for whom. */
export interface Validity {
  /** Milliseconds for which it is fresh, from when it was made. */
  readonly ttl: number;
  /** Milliseconds since it was made; `undefined` when it was made for this request. */
  readonly age: number | undefined;
  readonly staleWhileRevalidate: number;
  readonly staleIfError: number;
  /** Whether it is for nobody but this client. */
  readonly isPrivate: boolean;
  readonly cacheControl: 'max-age' | 'no-cache' | false;
}

/** RFC 9111, section 1.2.2, asks for no more than 2^31 seconds; more than a year says nothing more. */
const LONGEST = 31_536_000;

/**
 * Sets `Age`, and `Cache-Control` unless the application has set its own (RFC 9111, RFC 5861). Takes both back when the
 * response turns out to be an error after all, made by an interceptor outside; and keeps it from shared caches when there
 * is a cookie on it, which a session may add at the last moment.
 */
export function setValidity(response: HttpResponse, validity: Validity): void {
  if (validity.age !== undefined) setHeader(response, 'Age', String(seconds(validity.age)));
  const isOurs = validity.cacheControl !== false && headerOf(response, 'cache-control') === '';
  const ours = cacheControl(validity);
  if (isOurs) setHeader(response, 'Cache-Control', ours);
  const keepPrivate = () => {
    if (isOurs && headerOf(response, 'cache-control') === ours)
      setHeader(response, 'Cache-Control', cacheControl({ ...validity, isPrivate: true }));
  };
  whenCookieIsSet(response, keepPrivate);
  beforeHead(response, (status) => {
    if (status >= 400) {
      response.removeHeader('age');
      response.removeHeader('cache-status');
      if (isOurs) response.removeHeader('cache-control');
    } else if (headerOf(response, 'set-cookie') !== '') {
      keepPrivate();
    }
  });
}

function cacheControl(validity: Validity): string {
  const directives = [validity.isPrivate ? 'private' : 'public'];
  if (validity.cacheControl === 'no-cache') return [...directives, 'no-cache'].join(', ');
  directives.push(`max-age=${seconds(validity.ttl)}`);
  const { staleWhileRevalidate, staleIfError } = validity;
  if (staleWhileRevalidate > 0) directives.push(`stale-while-revalidate=${seconds(staleWhileRevalidate)}`);
  if (staleIfError > 0) directives.push(`stale-if-error=${seconds(staleIfError)}`);
  return directives.join(', ');
}

/** Adds to `Vary` what it does not name yet. */
export function addVary(response: HttpResponse, names: Iterable<string>): void {
  const there = listOf(response.getHeader('vary'));
  if (there.includes('*')) return;
  const missing = [...names].filter((name) => !there.includes(name.toLowerCase()));
  if (missing.length === 0) return;
  const before = headerOf(response, 'vary');
  setHeader(response, 'Vary', [...(before === '' ? [] : [before]), ...missing].join(', '));
}

/** What became of a request in the cache: answered by it, or handed on to the handler, and why. */
export type CacheStatus =
  | Provenance
  /** The handler has run for this request. */
  | { readonly is: 'own'; readonly stored: number | undefined; readonly reload: boolean }
  | { readonly is: 'bypass'; readonly why: string }
  | { readonly is: 'method' };

/** Adds to `Cache-Status` (RFC 9211): the cache that is nearest to the origin comes first. */
export function addCacheStatus(response: HttpResponse, cache: string | undefined, status: CacheStatus): void {
  const before = headerOf(response, 'cache-status');
  const member = `${identifier(cache)}; ${parametersOf(status)}`;
  setHeader(response, 'Cache-Status', before === '' ? member : `${before}, ${member}`);
}

function parametersOf(status: CacheStatus): string {
  switch (status.is) {
    case 'hit':
      return `hit${status.left === undefined ? '' : `; ttl=${seconds(status.left)}`}`;
    case 'kept':
      return 'hit';
    case 'stale':
      return status.reason === 'while-revalidate'
        ? `hit; ttl=-${seconds(status.since)}`
        : `fwd=stale; ttl=-${seconds(status.since)}; detail=${status.reason}`;
    case 'load':
      return 'fwd=miss; collapsed';
    case 'own':
      return `fwd=${status.reload ? 'request' : 'miss'}${status.stored === undefined ? '' : `; stored; ttl=${seconds(status.stored)}`}`;
    case 'method':
      return 'fwd=method';
    case 'bypass':
      return `fwd=bypass; detail=${text(status.why)}`;
  }
}

function identifier(cache: string | undefined): string {
  const name = cache === undefined ? 'stampede' : `stampede.${cache}`;
  return /^[A-Za-z][\w.:/!#$%&'*+^`|~-]*$/.test(name) ? name : text(name);
}

/** RFC 8941's string. */
function text(value: string): string {
  return `"${value.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')}"`;
}

function seconds(milliseconds: number): number {
  return Math.min(LONGEST, Math.floor(milliseconds / 1_000));
}
