import { Redis, type RedisOptions } from 'ioredis';
import { InvalidOptionError } from '../core/errors.js';
import type { Client } from './client.js';

/** A `Redis` or `Cluster` of ioredis 5 or 6, whichever copy of the package it comes from. */
export interface IoredisClient {
  readonly isCluster: boolean;
  readonly status: string;
  /** What we make our own connections by. */
  duplicate(...args: never[]): unknown;
}

/** Where Redis is: a URL, the options of ioredis, or a client of it. */
export type ConnectionSource = string | RedisOptions | IoredisClient;

/**
 * What a store connects by: a source, or a function that returns one, now or later. A client is only the pattern for our
 * own: it is neither used nor closed.
 */
export type ConnectionOption = ConnectionSource | (() => ConnectionSource | Promise<ConnectionSource>);

/** @throws InvalidOptionError when it can't be connected by */
export function checkConnectionOption(connection: unknown): asserts connection is ConnectionOption {
  if (typeof connection === 'string' && isAddress(connection)) return;
  if (typeof connection === 'function') return;
  if (typeof connection === 'object' && connection !== null && !Array.isArray(connection) && hasPort(connection))
    return;
  throw new InvalidOptionError(
    'connection',
    connection,
    'a redis:// URL, the options of ioredis, a Redis or Cluster client of it, or a function that returns one of these',
  );
}

/** What ioredis can make something of: a URL of Redis, `host:port` or a part of it, or the path of a socket. */
function isAddress(text: string): boolean {
  if (!text.includes('://')) return /^(\/.+|[\w.-]+(:\d+)?|\[[\da-f:]+\](:\d+)?)$/i.test(text);
  try {
    return ['redis:', 'rediss:'].includes(new URL(text).protocol);
  } catch {
    return false;
  }
}

function hasPort(options: object): boolean {
  const { port } = options as { port?: unknown };
  if (port === undefined || port === null) return true;
  return port !== '' && Number.isInteger(Number(port)) && Number(port) >= 0 && Number(port) < 65_536;
}

/**
 * A client to duplicate: the user's, or one that never connects.
 *
 * @throws InvalidOptionError when the user's function returns something else; and what that function throws
 */
export async function resolveConnection(connection: ConnectionOption): Promise<Client> {
  const source = typeof connection === 'function' ? await connection() : connection;
  checkConnectionOption(source);
  if (typeof source === 'function') return resolveConnection(source);
  if (typeof source === 'string') return new Redis(source, { lazyConnect: true });
  return isClient(source) ? (source as unknown as Client) : new Redis({ ...source, lazyConnect: true });
}

/** Not by `instanceof`: it may be a class of another copy, or version, of ioredis. */
function isClient(source: RedisOptions | IoredisClient): source is IoredisClient {
  return 'duplicate' in source && typeof source.duplicate === 'function';
}
