import { randomUUID } from 'node:crypto';
import { jsonCodec } from '../../core/codec.js';
import { composeKey, type Key } from '../../core/keys.js';
import { getOrLoadWith } from '../get-or-load.js';
import type { RouteCall } from './route-call.js';

/**
 * The key that evicts responses: all of whose routes `evictBy` gives `key`, whatever their path, query and headers. It is apart
 * from `key` itself, by which data may be cached.
 *
 * @throws InvalidKeyError
 * @example
 * @CacheEvict({ keys: (id) => [['product', id], responsesOf(['product', id])] })
 * update(id: string, changes: Partial<Product>): Promise<void> { … }
 */
export function responsesOf(key: Key): string {
  return `${RESPONSES}:${composeKey(key)}`;
}

/** No part of a key begins like that. */
const RESPONSES = '~responses';

/** Whether and by what a call's response is evicted: `undefined` when the route says that it isn't to be cached. */
export function evictionKeyOf({ context, route, facts }: RouteCall): { readonly key: string | undefined } | undefined {
  if (!route.evictBy) return { key: undefined };
  const key = route.evictBy(context);
  if (key === undefined) return undefined;
  const where = `The key that the 'evictBy' function of ${facts.name}'s @CacheResponse returned`;
  return { key: `${RESPONSES}:${composeKey(key, where)}` };
}

/**
 * What the keys of responses have in them that are evicted together: an eviction forgets it, so that who asks after it asks
 * for other keys than those that were stored, or are being loaded, until then. So all that holds for an eviction holds for
 * these, and they need not be known.
 */
export async function generationOf({ access }: RouteCall, key: string | undefined): Promise<string | undefined> {
  return key === undefined ? undefined : getGeneration(access.cache, key, async () => randomUUID());
}

/** A new one before its time makes no more than misses; one that is old is no use. */
const getGeneration = getOrLoadWith<string>({
  ttl: '1d',
  codec: jsonCodec,
  isolate: 'none',
  staleWhileRevalidate: 0,
  staleIfError: 0,
  softTimeout: false,
  earlyRefresh: false,
});
