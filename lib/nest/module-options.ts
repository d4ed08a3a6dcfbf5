import type { ConfigurableModuleAsyncOptions } from '@nestjs/common';
import type { Clock } from '../core/clock.js';
import type { Duration } from '../core/durations.js';
import { InvalidOptionError } from '../core/errors.js';
import { checkOptionNames, type OptionNames } from '../core/option-names.js';
import type { CacheOptions, ReadFrom } from '../core/options.js';
import type { ErrorCodec } from '../core/outcome.js';
import type { Store } from '../core/store.js';
import type { ConnectionOption } from '../redis/connection-source.js';

/** The options of one cache. */
export interface StampedeCacheOptions extends CacheOptions {
  /**
   * Where Redis is: a URL, options of ioredis, a client of it (which is duplicated, never used or closed), or a function
   * that returns one of these. Without this key the cache lives in this process's memory. The key with `undefined`, as an
   * unset variable gives it, is an error at boot.
   */
  readonly connection?: ConnectionOption | undefined;
  /** The first part of every key and channel in Redis. Default `'stampede'`. A named cache adds its name: `'stampede.<name>'`. */
  readonly namespace?: string;
  /** How long to wait for Redis at the start, in milliseconds or as `'2s'`. Default 2 s. */
  readonly connectTimeout?: Duration;
  /**
   * How many replicas must have an eviction, a `set` or a lock before it counts, within half of `commandTimeout`; otherwise it
   * fails. What they have, a failover is less likely to lose. Default 0.
   */
  readonly replicas?: number;
  /**
   * Where `getOrLoad` looks first: `'replica'`, on Sentinel or a Cluster, takes reads off the primary, but may find for a
   * moment what was evicted. Default `'primary'`.
   */
  readonly readFrom?: ReadFrom;
  /**
   * `'memory'`: this process's memory, whatever `connection` says; processes are then not coordinated. Or a store of your
   * own, which is closed with the application.
   */
  readonly store?: 'memory' | Store | undefined;
  /**
   * Carries the errors of loaders to processes that waited for them. Default: `httpErrorCodec`, by which an `HttpException`
   * arrives as one and other errors as a `RemoteLoadError`.
   */
  readonly errorCodec?: ErrorCodec;
  /** For tests: whose time deadlines, and the memory store's entries, end by. Default: this process's monotonic clock. */
  readonly clock?: Clock;
}

/** What has to be known before the options are, because providers are found by it. */
export interface StampedeCacheExtras {
  /** Makes it a cache beside the default one: `@InjectStampedeCache(name)`, and `{ cache: name }` in decorators. */
  readonly name?: string;
  /** Whether every module of the application may use it without importing it. Default true; with `false`, each module that decorates imports it. */
  readonly isGlobal?: boolean;
}

/** What `StampedeCacheModule.forRoot` takes. */
export interface StampedeCacheModuleOptions extends StampedeCacheOptions, StampedeCacheExtras {}

const OPTION_NAMES: OptionNames<StampedeCacheOptions> = {
  connection: true,
  connectTimeout: true,
  store: true,
  namespace: true,
  commandTimeout: true,
  drainTimeout: true,
  defaults: true,
  near: true,
  profiles: true,
  errorCodec: true,
  clock: true,
  logger: true,
  maxConcurrentLoads: true,
  retryEvictions: true,
  onBoot: true,
  replicas: true,
  readFrom: true,
};

/**
 * Checks what only the module can: the names, and where the cache is to live.
 *
 * @throws InvalidOptionError naming the option
 */
export function checkModuleOptions(given: unknown): asserts given is StampedeCacheOptions {
  checkIsObject(given, 'The options of StampedeCacheModule');
  checkOptionNames<StampedeCacheOptions>(given, OPTION_NAMES, 'StampedeCacheModule');
  const { store, errorCodec, clock, logger } = given as Record<string, unknown>;
  if (store !== undefined && store !== 'memory' && !hasMethods(store, 'start', 'lead', 'close')) {
    throw new InvalidOptionError('store', store, "'memory', a store of your own, or left out");
  }
  if (errorCodec !== undefined && !hasMethods(errorCodec, 'encode', 'decode')) {
    throw new InvalidOptionError('errorCodec', errorCodec, 'an object with encode(error) and decode(text)');
  }
  if (clock !== undefined && !hasMethods(clock, 'now', 'after')) {
    throw new InvalidOptionError('clock', clock, 'an object with now() and after(delay, run)');
  }
  if (logger !== undefined && !hasMethods(logger, 'log', 'warn', 'error')) {
    throw new InvalidOptionError(
      'logger',
      logger,
      "an object with log(message), warn(message) and error(message), as Nest's",
    );
  }
  if (store === undefined) checkConnectionIsSet(given);
}

/**
 * For those whom no compiler told, before anything is read from it.
 *
 * @param what whose options they are, as in `The options of forRoot`
 * @throws InvalidOptionError
 */
export function checkIsObject(given: unknown, what: string): asserts given is object {
  if (typeof given === 'object' && given !== null && !Array.isArray(given)) return;
  throw new InvalidOptionError(what, given, 'an object');
}

/** The rest of what `connection` may be is the Redis store's to know. */
function checkConnectionIsSet(given: { connection?: unknown }): void {
  if (!('connection' in given)) return;
  const { connection } = given;
  if (connection !== undefined && connection !== null && connection !== '') return;
  throw new InvalidOptionError(
    'connection',
    connection,
    'a redis:// URL, the options of ioredis, or a client of it. Is the variable that it comes from (such as REDIS_URL) unset? ' +
      "For a cache in this process's memory leave the key out, or say store: 'memory'",
  );
}

function hasMethods(given: unknown, ...names: string[]): boolean {
  return names.every((name) => typeof Object(given)[name] === 'function');
}

/** What `useClass` and `useExisting` of `forRootAsync` name. */
export interface StampedeCacheOptionsFactory {
  /** The options, now or later; called once, at the start. */
  createStampedeCacheOptions(): StampedeCacheOptions | Promise<StampedeCacheOptions>;
}

type AsyncOptions = ConfigurableModuleAsyncOptions<StampedeCacheOptions, keyof StampedeCacheOptionsFactory>;

/** What `StampedeCacheModule.forRootAsync` takes: exactly one of `useFactory`, `useClass` and `useExisting`. */
export interface StampedeCacheModuleAsyncOptions extends AsyncOptions, StampedeCacheExtras {}

const ASYNC_NAMES: OptionNames<StampedeCacheModuleAsyncOptions> = {
  useFactory: true,
  useClass: true,
  useExisting: true,
  inject: true,
  imports: true,
  provideInjectionTokensFrom: true,
  name: true,
  isGlobal: true,
};

/** @throws InvalidOptionError naming the option */
export function checkAsyncOptions(given: StampedeCacheModuleAsyncOptions): void {
  checkIsObject(given, 'The options of forRootAsync');
  checkOptionNames(given, ASYNC_NAMES, 'forRootAsync');
  const { useFactory, useClass, useExisting } = given;
  const ways = [useFactory, useClass, useExisting].filter((way) => way !== undefined);
  if (ways.length === 1) return;
  throw new InvalidOptionError('useFactory', useFactory, 'given, or useClass, or useExisting, and only one of them');
}
