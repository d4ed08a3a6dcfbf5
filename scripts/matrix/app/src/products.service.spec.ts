import { Test } from '@nestjs/testing';
import { bypassStampedeCache, StampedeCache, StampedeCacheModule } from 'nestjs-stampede-cache';
import { ProductsService } from './products.service';

describe('products', () => {
  it('are loaded once, and anew after an eviction', async () => {
    const app = await Test.createTestingModule({
      imports: [StampedeCacheModule.forTest()],
      providers: [ProductsService],
    }).compile();
    const products = app.get(ProductsService);
    await Promise.all([products.find('1'), products.find('1')]);
    expect(products.loads).toBe(1);
    await products.change('1');
    await products.find('1');
    expect(products.loads).toBe(2);
    expect(app.get(StampedeCache)).toBeInstanceOf(StampedeCache);
    await app.close();
  });

  it('are loaded at each call without Nest', async () => {
    const products = bypassStampedeCache(new ProductsService());
    await products.find('1');
    await products.find('1');
    expect(products.loads).toBe(2);
  });
});
