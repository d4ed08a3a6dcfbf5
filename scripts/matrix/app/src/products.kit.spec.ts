import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { STAMPEDE_CACHE_OPTIONS, StampedeCache, StampedeCacheModule } from 'nestjs-stampede-cache';
import { countLoads, expectLoads, FaultyStore, TestClock } from 'nestjs-stampede-cache/testing';
import { PagesController } from './pages.controller';
import { productsKit } from './products.kit';
import { ProductsService } from './products.service';

describe('with nestjs-stampede-cache/testing', () => {
  let app: INestApplication | undefined;
  afterEach(() => app?.close());

  it('time is moved by the test, and loads are counted', async () => {
    const kit = productsKit();
    const testing = await Test.createTestingModule({ imports: [kit.module], providers: [ProductsService] }).compile();
    app = testing.createNestApplication();
    const [products, cache] = [testing.get(ProductsService), testing.get(StampedeCache)];
    expect(cache).toBeInstanceOf(StampedeCache);
    await expectLoads(cache, 1, () => Promise.all([products.find('1'), products.find('1')]));
    await kit.clock.advance('59s');
    await expectLoads(cache, 0, () => products.find('1'));
    await kit.clock.advance('1s');
    await expectLoads(cache, { 'product:1': 1 }, () => products.find('1'));
    await expect(expectLoads(cache, 1, () => products.find('1'))).rejects.toThrow();
  });

  it('the store fails when the test says so, and another process shares it', async () => {
    const kit = productsKit();
    expect(kit.clock).toBeInstanceOf(TestClock);
    expect(kit.store).toBeInstanceOf(FaultyStore);
    const start = ({ module }: typeof kit) =>
      Test.createTestingModule({ imports: [module], providers: [ProductsService] }).compile();
    const [here, there] = await Promise.all([start(kit), start(kit.otherProcess())]);
    const loads = [here, there].map((testing) => countLoads(testing.get(StampedeCache)));
    await Promise.all([here, there].map((testing) => testing.get(ProductsService).find('1')));
    expect(loads.reduce((sum, { total }) => sum + total, 0)).toBe(1);
    kit.store.fails('read', 'rejects');
    kit.store.fails('lead', 'rejects');
    expect(await here.get(ProductsService).find('2')).toEqual({ id: '2' });
    expect(kit.store.count('read')).toBeGreaterThan(0);
    kit.store.works();
    await Promise.all([here.close(), there.close()]);
  });

  it('an application is given the kit in the place of its options', async () => {
    const kit = productsKit();
    const testing = await Test.createTestingModule({
      imports: [StampedeCacheModule.forRoot({ connection: 'redis://no-such-host:1', onBoot: 'fail' })],
      controllers: [PagesController],
    })
      .overrideProvider(STAMPEDE_CACHE_OPTIONS)
      .useValue(kit.options)
      .compile();
    app = testing.createNestApplication();
    await app.listen(0, '127.0.0.1');
    const url = `${await app.getUrl()}/page`;
    const get = async () => (await fetch(url)).json();
    expect([await get(), await get()]).toEqual([{ page: 1 }, { page: 1 }]);
    await kit.clock.advance('60s');
    expect(await get()).toEqual({ page: 2 });
  });
});
