import { composeKey } from '../core/keys.js';
import type { HttpRequest } from './http.js';

/** Which handler answers, where several have the same URL (versions told by a header). */
export interface Route {
  /** The class and the method, as in `ProductsController.find`. */
  readonly name: string;
  readonly version: string | undefined;
  /** The query's parameters that count; all if left out. */
  readonly query: readonly string[] | undefined;
}

/**
 * The key of what a handler answers: method, host, handler and the URL as it was asked for. The order of the query's
 * parameters doesn't matter; that of several values of one does.
 */
export function requestKey(request: HttpRequest, { name, version, query }: Route): string {
  const { method, hostname, url, originalUrl = url } = request;
  const [path = '', search] = splitOnce(originalUrl, '?');
  const parameters = search === undefined ? '' : normalise(search, query);
  const handler = version === undefined ? name : `${name}@${version}`;
  return composeKey([method, hostname, handler, path, ...(parameters === '' ? [] : [parameters])]);
}

/**
 * Sorts by name, and leaves each parameter's text as it is: what was decoded could be the same for two that are not. A
 * parser takes `a[]`, `a[0]` and an encoded `%61` for values of one `a`, so these keep their order.
 */
function normalise(search: string, allowed: readonly string[] | undefined): string {
  const parameters = search
    .split('&')
    .filter((text) => text !== '')
    .map((text) => ({ text, name: nameOf(text) }));
  const counting = allowed ? parameters.filter(({ name }) => allowed.includes(name)) : parameters;
  return counting
    .sort((left, right) => (left.name < right.name ? -1 : left.name > right.name ? 1 : 0))
    .map(({ text }) => text)
    .join('&');
}

function nameOf(parameter: string): string {
  const [encoded = ''] = splitOnce(parameter, '=');
  const [name = ''] = decode(encoded).split(/[[.]/, 1);
  return name;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return text;
  }
}

function splitOnce(text: string, separator: string): [string, string?] {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + separator.length)];
}
