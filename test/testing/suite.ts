/** What the test kit has to do in whatever test runner: jest runs this, and vitest. */
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  CacheAside,
  CacheEvict,
  defineKey,
  STAMPEDE_CACHE_OPTIONS,
  StampedeCache,
  StampedeCacheModule,
} from 'nestjs-stampede-cache';
import { countLoads, createTestKit, expectLoads, type TestKit } from 'nestjs-stampede-cache/testing';

/** The part of a test runner that this needs. */
export interface Runner {
  describe(name: string, body: () => void): void;
  it(name: string, body: () => Promise<void>): void;
  afterEach(body: () => Promise<void>): void;
  expect(actual: unknown): {
    toBe(expected: unknown): void;
    toEqual(expected: unknown): void;
    toContain(expected: string): void;
    rejects: { toMatchObject(expected: object): Promise<void> };
  };
}

const productKey = defineKey('product', (id: string) => [id]);

@Injectable()
class Products {
  version = 1;
  /** What a query waits for. */
  slowness = async () => {};

  @CacheAside(productKey, { ttl: '60s', staleIfError: '1h' })
  async find(id: string): Promise<string> {
    await this.slowness();
    return `${id} v${this.version}`;
  }

  @CacheEvict(productKey)
  async update(_id: string): Promise<void> {
    this.version += 1;
  }
}

export function testKitSuite({ describe, it, afterEach, expect }: Runner): void {
  const apps: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const app of apps.splice(0)) await app.close();
  });

  async function start(kit: TestKit) {
    const app = await Test.createTestingModule({ imports: [kit.module], providers: [Products] }).compile();
    apps.push(await app.init());
    return { products: app.get(Products), cache: app.get(StampedeCache) };
  }

  const crowd = (products: Products, id = '1') => Promise.all(Array.from({ length: 20 }, () => products.find(id)));

  describe('the clock', () => {
    it('makes values expire without anybody waiting', async () => {
      const kit = createTestKit();
      const { products, cache } = await start(kit);
      await expectLoads(cache, 1, () => crowd(products));
      await kit.clock.advance('59s');
      await expectLoads(cache, 0, () => crowd(products));
      await kit.clock.advance('1s');
      await expectLoads(cache, 1, () => crowd(products));
    });

    it('lets a loader take as long as the test says', async () => {
      const kit = createTestKit();
      const { products, cache } = await start(kit);
      products.slowness = () => kit.clock.sleep('20s');
      await expectLoads(cache, 1, async () => {
        const found = crowd(products);
        await kit.clock.advance('20s');
        expect(new Set(await found)).toEqual(new Set(['1 v1']));
      });
      await products.update('1');
      products.slowness = () => kit.clock.sleep('31s');
      const found = products.find('1');
      const failed = expect(found).rejects.toMatchObject({ code: 'LOAD_TIMEOUT' });
      await kit.clock.advance('30s');
      await failed;
    });
  });

  describe('the store', () => {
    it('fails on demand, and works again', async () => {
      const kit = createTestKit();
      const { products, cache } = await start(kit);
      kit.store.isAway('rejects');
      expect(await products.find('1')).toBe('1 v1');
      kit.store.works();
      await kit.clock.advance('2s');
      expect(await cache.has(productKey('1'))).toBe(false);
      await expectLoads(cache, 1, () => products.find('1'));
      await expectLoads(cache, 0, () => products.find('1'));
    });

    it('loses requests: calls wait for no longer than commandTimeout', async () => {
      const kit = createTestKit({ commandTimeout: 200 });
      const { products } = await start(kit);
      kit.store.fails('read', 'request lost');
      let found: string | undefined;
      const finding = products.find('1').then((value) => {
        found = value;
      });
      await kit.clock.advance(199);
      expect(found).toBe(undefined);
      await kit.clock.advance(1);
      await finding;
      expect(found).toBe('1 v1');
    });

    it('loses a reply: what was stored is stored', async () => {
      const kit = createTestKit();
      const { products, cache } = await start(kit);
      kit.store.fails('end', 'reply lost');
      const finding = products.find('1');
      await kit.clock.advance('30s');
      expect(await finding).toBe('1 v1');
      expect(kit.store.count('end') > 0).toBe(true);
      kit.store.works();
      await kit.clock.advance('2s');
      expect(await cache.get(productKey('1'))).toBe('1 v1');
    });

    it('is slow', async () => {
      const kit = createTestKit();
      const { products } = await start(kit);
      kit.store.fails('read', { repliesAfter: 100 });
      const startedAt = kit.clock.now();
      const finding = products.find('1').then(() => kit.clock.now() - startedAt);
      await kit.clock.advance(99);
      await kit.clock.advance(1);
      expect(await finding).toBe(100);
    });
  });

  describe('another process', () => {
    it('shares store and time, and nothing else', async () => {
      const kit = createTestKit();
      const other = kit.otherProcess();
      const [here, there] = [await start(kit), await start(other)];
      here.products.slowness = there.products.slowness = () => kit.clock.sleep(100);
      const finding = Promise.all([crowd(here.products), crowd(there.products)]);
      const loads = [countLoads(here.cache), countLoads(there.cache)];
      await kit.clock.advance(100);
      await finding;
      expect(loads.reduce((sum, { total }) => sum + total, 0)).toBe(1);
      await here.products.update('1');
      there.products.version = 7;
      const found = there.products.find('1');
      await kit.clock.advance(100);
      expect(await found).toBe('1 v7');
      other.store.isAway('rejects');
      expect(await here.cache.has(productKey('1'))).toBe(true);
    });
  });

  describe('a whole application', () => {
    it('is tested with the options of the kit in the place of its own', async () => {
      const kit = createTestKit();
      const testing = Test.createTestingModule({
        imports: [StampedeCacheModule.forRoot({ connection: 'redis://127.0.0.1:1' })],
        providers: [Products],
      });
      const app = await testing.overrideProvider(STAMPEDE_CACHE_OPTIONS).useValue(kit.options).compile();
      apps.push(app);
      const products = app.get(Products);
      await expectLoads(app.get(StampedeCache), 1, () => crowd(products));
      await kit.clock.advance('60s');
      await expectLoads(app.get(StampedeCache), 1, () => crowd(products));
    });
  });

  describe('what can not be', () => {
    const optionOf = (run: () => unknown) => {
      try {
        run();
      } catch (error) {
        return (error as { option?: string }).option;
      }
      return 'no error';
    };

    it('of a kit is an error that names the option', async () => {
      expect(optionOf(() => createTestKit({ profils: {} } as never))).toBe('profils');
      expect(optionOf(() => createTestKit({ connection: 'redis://localhost' } as never))).toBe('connection');
      expect(optionOf(() => createTestKit(null as never))).toBe('The options of createTestKit');
      expect(optionOf(() => createTestKit({ name: 'sessions', isGlobal: false, commandTimeout: 200 }))).toBe(
        'no error',
      );
    });

    it('of its store is an error that names it', async () => {
      const { store } = createTestKit();
      expect(optionOf(() => store.fails('reed' as never, 'rejects'))).toBe('command');
      expect(optionOf(() => store.fails('read', 'reject' as never))).toBe('fault');
      expect(optionOf(() => store.fails('read', { runsAfter: '1s' } as never))).toBe('fault');
      expect(optionOf(() => store.failsFor('reed' as never, 'key', 'rejects'))).toBe('command');
      expect(optionOf(() => store.isAway('rejected' as never))).toBe('fault');
      expect(optionOf(() => store.works('reed' as never))).toBe('command');
      expect(optionOf(() => store.count('reed' as never))).toBe('command');
      expect(optionOf(() => store.fails('read', { repliesAfter: 5 }))).toBe('no error');
    });

    it('of expectLoads is an error before anything runs', async () => {
      const { cache, products } = await start(createTestKit());
      const loads = countLoads(cache);
      for (const wrong of ['1', -1, 1.5, Number.NaN, null, undefined, { [productKey('1')]: '1' }]) {
        const expecting = expectLoads(cache, wrong as never, () => products.find('1'));
        await expect(expecting).rejects.toMatchObject({ name: 'InvalidOptionError', option: 'expected' });
      }
      const nothing = expectLoads(undefined as never, 1, () => products.find('1'));
      await expect(nothing).rejects.toMatchObject({ name: 'InvalidOptionError', option: 'cache' });
      expect(loads.total).toBe(0);
    });
  });

  describe('expectLoads', () => {
    it('fails with the keys that were loaded', async () => {
      const { products, cache } = await start(createTestKit());
      const wrong = expectLoads(cache, 1, async () => {
        await products.find('1');
        await products.find('2');
      });
      await expect(wrong).rejects.toMatchObject({
        name: 'AssertionError',
        message: "Expected loads: 1; there were: 1 of 'product~1', 1 of 'product~2'",
        actual: 2,
        expected: 1,
      });
      const none = expectLoads(cache, 1, () => products.find('1'));
      await expect(none).rejects.toMatchObject({ message: 'Expected loads: 1; there were: none' });
    });

    it('expects so many of each key, and of no other', async () => {
      const { products, cache } = await start(createTestKit());
      await expectLoads(cache, { [productKey('1')]: 1, [productKey('3')]: 0 }, () => crowd(products));
      const another = expectLoads(cache, { [productKey('2')]: 1 }, () =>
        Promise.all([products.find('2'), products.find('3')]),
      );
      await expect(another).rejects.toMatchObject({ actual: { 'product~2': 1, 'product~3': 1 } });
    });

    it('returns what was run, and throws what that threw', async () => {
      const { products, cache } = await start(createTestKit());
      expect(await expectLoads(cache, 1, () => products.find('1'))).toBe('1 v1');
      products.slowness = () => Promise.reject(new Error('the database is away'));
      const failing = expectLoads(cache, 0, () => products.find('2'));
      await expect(failing).rejects.toMatchObject({ message: 'the database is away' });
    });

    it('counts until it is stopped', async () => {
      const { products, cache } = await start(createTestKit());
      const loads = countLoads(cache);
      await products.find('1');
      await products.find('2');
      expect(loads.total).toBe(2);
      expect(loads.byKey.get(productKey('1'))).toBe(1);
      loads.reset();
      await products.find('3');
      loads.stop();
      await products.find('4');
      expect([...loads.byKey.keys()]).toEqual([productKey('3')]);
    });
  });
}
