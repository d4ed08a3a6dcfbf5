import type { CallHandler, ExecutionContext } from '@nestjs/common';
import type { CacheAccess } from '../cache-access.js';
import type { CachedRoute } from './cache-response-options.js';
import type { RouteFacts } from './route-metadata.js';

/** A call of a handler that has `@CacheResponse`. */
export interface RouteCall {
  readonly context: ExecutionContext;
  readonly next: CallHandler;
  readonly route: CachedRoute;
  readonly facts: RouteFacts;
  readonly access: CacheAccess;
  /** Says once, for each handler, what its author may change; of what clients can make up, `kind`, the first few only. */
  warn(what: string, kind?: 'a header'): void;
}
