import type { DynamicModule } from '@nestjs/common';
import { InvalidOptionError } from '../core/errors.js';
import { silentLogger } from '../core/logger.js';
import { MemoryServer } from '../memory/memory-server.js';
import { MemoryStore } from '../memory/memory-store.js';
import {
  checkIsObject,
  checkModuleOptions,
  type StampedeCacheModuleOptions,
  type StampedeCacheOptions,
} from '../nest/module-options.js';
import { StampedeCacheModule } from '../nest/stampede-cache.module.js';
import { FaultyStore } from './faulty-store.js';
import { TestClock } from './test-clock.js';

/** What a test has in its hands of a cache: its time, and its store's troubles. */
export interface TestKit {
  /** To be imported where the application has `forRoot`. */
  readonly module: DynamicModule;
  /**
   * The same as options, for a test of the whole application:
   * `overrideProvider(STAMPEDE_CACHE_OPTIONS).useValue(kit.options)`.
   */
  readonly options: StampedeCacheOptions;
  /** Moves what is fresh, what is locked, and what waits. */
  readonly clock: TestClock;
  /** Makes commands fail, be late, or get lost. */
  readonly store: FaultyStore;
  /** A kit on the same store and the same clock, as another process has one. */
  otherProcess(): TestKit;
}

/**
 * Makes a cache for a test: in memory, silent, its clock moved by the test, its store failing when the test says so. It
 * builds on `StampedeCacheModule.forTest()`, which is enough for who needs neither.
 *
 * @param options those of `forRoot`: `name`, `profiles` and `defaults` above all
 * @throws InvalidOptionError naming an option that there is not, or that a kit has itself
 * @example
 * const kit = createTestKit();
 * Test.createTestingModule({ imports: [kit.module], providers: [ProductsService] });
 */
export function createTestKit(options: Omit<StampedeCacheModuleOptions, 'store' | 'connection'> = {}): TestKit {
  checkKitOptions(options);
  const clock = new TestClock();
  return kitOn(new MemoryServer({ clock }), clock, options);
}

/** Here, and not only at boot: the options of a kit may be put in the place of others. */
function checkKitOptions(given: unknown): void {
  checkIsObject(given, 'The options of createTestKit');
  const { name: _name, isGlobal: _isGlobal, ...options } = given as StampedeCacheModuleOptions;
  for (const its of ['store', 'connection'] as const) {
    if (its in options) throw new InvalidOptionError(its, options[its], 'left out: a kit has a store of its own');
  }
  checkModuleOptions(options);
}

function kitOn(server: MemoryServer, clock: TestClock, given: StampedeCacheModuleOptions): TestKit {
  const store = new FaultyStore(new MemoryStore({ server }), clock);
  const { name, isGlobal, ...others } = given;
  const options: StampedeCacheOptions = { logger: silentLogger, ...others, store, clock };
  return {
    module: StampedeCacheModule.forTest({ ...given, store, clock }),
    options,
    clock,
    store,
    otherProcess: () => kitOn(server, clock, given),
  };
}
