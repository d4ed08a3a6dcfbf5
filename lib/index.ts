export type { LoadContext, Loader } from './core/caller.js';
export type { Clock, Timer } from './core/clock.js';
export { type Codec, jsonCodec } from './core/codec.js';
export { type CacheParts, createStampede, type Stampede } from './core/create.js';
export { type DefinedKey, defineKey } from './core/define-key.js';
export type { Duration, DurationUnit } from './core/durations.js';
export * from './core/errors.js';
export type { CacheEvent, NotStoredReason, StaleReason, StoreCommand } from './core/events.js';
export type { LoadMany } from './core/gathering.js';
export { composeKey, type Key, type KeyPart } from './core/keys.js';
export { Lock } from './core/lock.js';
export { type LockOptions, LockService, type TryLockOptions } from './core/lock-service.js';
export type { StampedeLogger } from './core/logger.js';
export type {
  Loaded,
  LoadManyOptions,
  LoadManyProfiledOptions,
  ManyCaching,
  ManyValues,
  OnKeyError,
  ValuesByKey,
} from './core/many.js';
export type { NearOptions } from './core/near-options.js';
export type {
  CacheOptions,
  CacheProfile,
  Caching,
  Isolation,
  LoadOptions,
  LoadPolicy,
  ProfiledOptions,
  ReadFrom,
  SetCaching,
  SetOptions,
  Ttl,
} from './core/options.js';
export { type ErrorCodec, remoteErrorCodec } from './core/outcome.js';
// By `*`, as only then declarations of an application merge with `CacheProfiles`.
export * from './core/profile-names.js';
export { StampedeCache } from './core/stampede-cache.js';
export type {
  ChangeListener,
  EndReply,
  EndRequest,
  LeadReply,
  LeadRequest,
  LockKind,
  ReadReply,
  RenewReply,
  RenewRequest,
  ReplaceRequest,
  Store,
  StoredEntry,
  WaitingReply,
} from './core/store.js';
export { MemoryServer, type MemoryServerOptions } from './memory/memory-server.js';
export { MemoryStore, type MemoryStoreOptions } from './memory/memory-store.js';
export { bypassStampedeCache } from './nest/bypass.js';
export { CacheAside } from './nest/cache-aside.decorator.js';
export { CacheAsideMany } from './nest/cache-aside-many.decorator.js';
export { CacheEvict } from './nest/cache-evict.decorator.js';
export { CachePut } from './nest/cache-put.decorator.js';
export type {
  CacheAsideManyOptions,
  CacheAsideManyProfileOptions,
  CacheAsideOptions,
  CacheAsideProfileOptions,
  CacheAsideSettings,
  CacheChoice,
  CacheEvictOptions,
  CachePutOptions,
  CachePutProfileOptions,
  CachePutSettings,
  WithLockOptions,
} from './nest/decorator-options.js';
export { CacheNotInjectedError } from './nest/errors.js';
export type { EvictedKeys, EvictionKeys } from './nest/evicted-keys.js';
export { CacheAsideInterceptor } from './nest/http/cache-aside.interceptor.js';
export { CacheResponse, type RouteHandlerDecorator } from './nest/http/cache-response.decorator.js';
export type {
  BodyOf,
  CacheControl,
  CacheResponseOptions,
  CacheResponseProfileOptions,
  CacheResponseSettings,
  RouteHandler,
} from './nest/http/cache-response-options.js';
export { responsesOf } from './nest/http/evict-by.js';
export { httpErrorCodec } from './nest/http-error-codec.js';
export { InjectLockService, InjectStampedeCache } from './nest/inject.js';
export type { CacheAsideManySettings, IdKeyFunction, IdOf, ManyMethod, ValueOf } from './nest/many-method.js';
export type { AsyncMethod, AsyncMethodDecorator, KeyFunction, ResultOf } from './nest/method-decorator.js';
export type {
  StampedeCacheExtras,
  StampedeCacheModuleAsyncOptions,
  StampedeCacheModuleOptions,
  StampedeCacheOptions,
  StampedeCacheOptionsFactory,
} from './nest/module-options.js';
export { StampedeCacheModule } from './nest/stampede-cache.module.js';
export { lockServiceToken, STAMPEDE_CACHE_OPTIONS, stampedeCacheToken } from './nest/tokens.js';
export { WithLock } from './nest/with-lock.decorator.js';
export type { ConnectionOption, ConnectionSource, IoredisClient } from './redis/connection-source.js';
export { RedisStore, type RedisStoreOptions } from './redis/redis-store.js';
