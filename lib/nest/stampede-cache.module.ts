import {
  type BeforeApplicationShutdown,
  type DynamicModule,
  Inject,
  Module,
  type OnApplicationShutdown,
  type OnModuleDestroy,
} from '@nestjs/common';
import { silentLogger } from '../core/logger.js';
import type { StampedeCacheModuleAsyncOptions, StampedeCacheModuleOptions } from './module-options.js';
import { checkAsyncOptions, checkIsObject } from './module-options.js';
import { ConfigurableModuleClass } from './stampede-cache.module-definition.js';
import type { StartedCache } from './start-cache.js';
import { STAMPEDE } from './tokens.js';

/**
 * Gives an application a cache and a lock service: `StampedeCache` and `LockService` to inject, and what the decorators
 * use. Import it once, in the root module; once more with a `name` for each further cache.
 *
 * When the application closes, running loads are waited for (at most `drainTimeout`), locks are released, and what was
 * opened here is closed. A client that was handed in stays open. Connections alone keep no process running: one whose boot
 * another provider failed ends by itself.
 */
@Module({})
export class StampedeCacheModule
  extends ConfigurableModuleClass
  implements OnModuleDestroy, BeforeApplicationShutdown, OnApplicationShutdown
{
  readonly #started: StartedCache;

  /** @internal */
  constructor(@Inject(STAMPEDE) started: StartedCache) {
    super();
    this.#started = started;
  }

  /**
   * Registers a cache.
   *
   * @param options without `connection` the cache lives in this process's memory
   * @throws InvalidOptionError, from here or at the boot of the application, naming an option that can't be used, that there
   * is not, or whose variable is unset
   * @example StampedeCacheModule.forRoot({ connection: process.env.REDIS_URL, defaults: { wait: '10s' } })
   */
  static override forRoot(options: StampedeCacheModuleOptions = {}): DynamicModule {
    checkIsObject(options, 'The options of forRoot');
    return { ...ConfigurableModuleClass.forRoot(options), module: StampedeCacheModule };
  }

  /**
   * Registers a cache whose options other providers know. `name` and `isGlobal` stand beside `useFactory`, not in what it
   * returns.
   *
   * @throws InvalidOptionError as `forRoot` does
   * @example
   * StampedeCacheModule.forRootAsync({
   *   inject: [ConfigService],
   *   useFactory: (config: ConfigService) => ({ connection: config.getOrThrow('REDIS_URL') }),
   * })
   */
  static override forRootAsync(options: StampedeCacheModuleAsyncOptions): DynamicModule {
    checkAsyncOptions(options);
    return { ...ConfigurableModuleClass.forRootAsync(options), module: StampedeCacheModule };
  }

  /**
   * Registers a cache for tests: in memory, and silent. Unlike `forRoot`, it needs nothing, and says nothing.
   *
   * @param options `name` above all
   * @example Test.createTestingModule({ imports: [StampedeCacheModule.forTest()], providers: [ProductsService] });
   */
  static forTest(options: StampedeCacheModuleOptions = {}): DynamicModule {
    checkIsObject(options, 'The options of forTest');
    return StampedeCacheModule.forRoot({ logger: silentLogger, store: 'memory', ...options });
  }

  /** The loads that run now may need a database that closes in the next step. */
  async onModuleDestroy(): Promise<void> {
    await this.#started.settle();
  }

  /** Requests that came since may load as well. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.#started.settle();
  }

  /** Not before: until the server is closed, requests that are still answered load, and evict what they have changed. */
  async onApplicationShutdown(): Promise<void> {
    await this.#started.close();
  }
}
