import { describe, expect, it } from '@jest/globals';
import { Injectable, type Type } from '@nestjs/common';
import { CacheEvict, defineKey, MemoryStore, StampedeCache, StampedeCacheModule } from 'nestjs-stampede-cache';
import { keptLogger, startApp } from './apps.js';

const productKey = defineKey('product', (id: string) => [id]);
const listKey = defineKey('products of', (category: string) => [category]);

interface Product {
  readonly id: string;
  readonly category: string;
}

/** Who evicts, and what is stored at each moment of it. */
abstract class Recording {
  readonly stored: string[][] = [];
  constructor(readonly cache: StampedeCache) {}

  async look(): Promise<void> {
    const keys = ['product~1', 'products of~new', 'products of~old', 'all'];
    const found = await Promise.all(keys.map((key) => this.cache.has(key)));
    this.stored.push(keys.filter((_key, i) => found[i]));
  }
}

const ALL = ['product~1', 'products of~new', 'products of~old', 'all'];

async function start<T extends Recording>(service: Type<T>, options = {}): Promise<T> {
  const app = await startApp({ imports: [StampedeCacheModule.forTest(options)], providers: [service] });
  const cache = app.get(StampedeCache);
  for (const key of ALL) await cache.set(key, 'old', '60s');
  return app.get(service);
}

@Injectable()
class Products extends Recording {
  constructor(cache: StampedeCache) {
    super(cache);
  }

  @CacheEvict({ keys: (id, category) => [productKey(id), ['all'], category === '' ? undefined : listKey(category)] })
  async several(_id: string, _category: string): Promise<void> {
    await this.look();
  }

  @CacheEvict({ keysOfResult: (product, _id, category) => [productKey(product.id), listKey(category)] })
  async ofResult(id: string, category: string): Promise<Product> {
    if (category === 'none') throw new Error('no such category');
    await this.look();
    return { id, category };
  }

  @CacheEvict({
    keys: (_id, category) => [listKey(category)],
    keysOfResult: (product) => product && [productKey(product.id)],
  })
  async both(id: string, category: string): Promise<Product | undefined> {
    return id === '' ? undefined : { id, category };
  }

  @CacheEvict(productKey, { when: 'before' })
  async before(id: string): Promise<string> {
    await this.look();
    await this.cache.set(productKey(id), 'new', '60s');
    if (id === '1') throw new Error('failed half way');
    return id;
  }

  @CacheEvict({ keys: (id) => [productKey(id)], keysOfResult: ({ category }) => [listKey(category)] }, { when: 'both' })
  async beforeAndAfter(id: string): Promise<Product> {
    await this.look();
    await this.cache.set(productKey(id), 'loaded meanwhile', '60s');
    if (id === 'fail') throw new Error('failed half way');
    return { id, category: 'new' };
  }

  @CacheEvict({
    keys(this: Products, id) {
      return this.cache instanceof StampedeCache ? [productKey(id)] : [];
    },
    keysOfResult(this: Products, id) {
      return [listKey(id), this.stored.length === 0 ? 'all' : undefined];
    },
  })
  async byInstance(id: string): Promise<string> {
    return id === '1' ? 'new' : id;
  }

  @CacheEvict({ keysOfResult: (product) => [[product.category, {} as string]] })
  async wrongKeys(id: string): Promise<Product> {
    return { id, category: 'new' };
  }

  @CacheEvict({ keys: () => 'product~1' as never })
  async noArray(): Promise<void> {
    await this.look();
  }
}

describe('@CacheEvict', () => {
  it('evicts several keys at once, leaving out what is undefined', async () => {
    const products = await start(Products);
    await products.several('1', 'new');
    await products.look();
    expect(products.stored).toEqual([ALL, ['products of~old']]);
    const others = await start(Products);
    await others.several('1', '');
    await others.look();
    expect(others.stored.at(-1)).toEqual(['products of~new', 'products of~old']);
  });

  it('evicts what the result says, and nothing when the method failed', async () => {
    const products = await start(Products);
    await expect(products.ofResult('1', 'none')).rejects.toThrow('no such category');
    expect(await products.ofResult('1', 'new')).toEqual({ id: '1', category: 'new' });
    await products.look();
    expect(products.stored).toEqual([ALL, ['products of~old', 'all']]);
  });

  it('takes keys of the arguments and of the result together', async () => {
    const products = await start(Products);
    await products.both('', 'old');
    await products.look();
    await products.both('1', 'new');
    await products.look();
    expect(products.stored).toEqual([['product~1', 'products of~new', 'all'], ['all']]);
  });

  it("with when: 'before' it is gone before the method runs, whatever comes of it", async () => {
    const products = await start(Products);
    await expect(products.before('1')).rejects.toThrow('failed half way');
    await products.look();
    expect(products.stored).toEqual([ALL.slice(1), ALL]);
    expect(await products.cache.get(productKey('1'))).toBe('new');
    await products.before('2');
    expect(await products.cache.get(productKey('2'))).toBe('new');
  });

  it("with when: 'both' it is gone before, and again after the method succeeded", async () => {
    const products = await start(Products);
    await products.beforeAndAfter('1');
    await products.look();
    expect(products.stored).toEqual([ALL.slice(1), ['products of~old', 'all']]);
    await expect(products.beforeAndAfter('fail')).rejects.toThrow('failed half way');
    expect(await products.cache.has(productKey('fail'))).toBe(true);
  });

  it('calls both functions with the instance as this', async () => {
    const products = await start(Products);
    await products.byInstance('1');
    await products.look();
    expect(products.stored).toEqual([['products of~old']]);
  });

  it('K3: keys of the arguments that are none are an error before the method runs', async () => {
    const products = await start(Products);
    await expect(products.noArray()).rejects.toThrow(
      /^What keys of Products\.noArray returned must be an array of keys/,
    );
    expect(products.stored).toEqual([]);
  });

  it('K3: keys of the result that are none are a line in the log: what the method did is done', async () => {
    const logger = keptLogger();
    const products = await start(Products, { logger });
    expect(await products.wrongKeys('1')).toEqual({ id: '1', category: 'new' });
    expect(logger.lines.at(-1)).toMatch(
      /^error: After Products\.wrongKeys nothing was evicted of what keysOfResult makes: Each key that keysOfResult of Products\.wrongKeys returned must be/,
    );
  });

  it('that failed is a line that names method and keys', async () => {
    const logger = keptLogger();
    const store = new MemoryStore();
    const products = await start(Products, { logger, store });
    store.replace = () => Promise.reject(new Error('READONLY'));
    await products.several('1', 'new');
    await expect(products.before('1')).rejects.toThrow();
    expect(logger.lines.filter((line) => line.includes('Products.'))).toEqual([
      expect.stringMatching(
        /^error: After Products\.several the keys 'product~1', 'all', 'products of~new' were not evicted/,
      ),
      expect.stringMatching(/^error: Before Products\.before the key 'product~1' was not evicted/),
    ]);
  });

  it("that failed before the method is an error before it, with onEvictError: 'throw'", async () => {
    @Injectable()
    class Strict {
      runs = 0;
      @CacheEvict(productKey, { when: 'before', onEvictError: 'throw' })
      async update(_id: string): Promise<void> {
        this.runs += 1;
      }
    }
    const store = new MemoryStore();
    store.replace = () => Promise.reject(new Error('READONLY'));
    const app = await startApp({ imports: [StampedeCacheModule.forTest({ store })], providers: [Strict] });
    await expect(app.get(Strict).update('1')).rejects.toMatchObject({ code: 'CACHE_EVICTION' });
    expect(app.get(Strict).runs).toBe(0);
  });

  it.each<[string, () => unknown]>([
    ['The key of @CacheEvict', () => CacheEvict(['product'] as never)],
    ['The key of @CacheEvict', () => CacheEvict({} as never)],
    ['The key of @CacheEvict', () => CacheEvict(undefined as never)],
    ['keys', () => CacheEvict({ keys: ['product'] } as never)],
    ['keysOfResult', () => CacheEvict({ keysOfResult: 'product' } as never)],
    ['keysOf', () => CacheEvict({ keysOf: () => [] } as never)],
    ['when', () => CacheEvict(() => 'key', { when: 'never' as never })],
    ['when', () => CacheEvict({ keysOfResult: () => [] }, { when: 'before' })],
    ['when', () => CacheEvict({ keysOfResult: () => [] }, { when: 'both' })],
  ])('is an error at decoration, naming %s', (option, decorate) => {
    expect(decorate).toThrow(expect.objectContaining({ name: 'InvalidOptionError', option }));
  });

  it('says where one key goes that was put in an object', () => {
    expect(() => CacheEvict({ key: () => 'key' } as never)).toThrow(
      'key must be spelled as one of keys, keysOfResult; it is no option of the first argument of @CacheEvict, which is ' +
        'a function that makes one key, or an object with keys or keysOfResult',
    );
  });
});
