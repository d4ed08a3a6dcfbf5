import { describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  CacheAside,
  CacheAsideMany,
  CacheEvict,
  CachePut,
  InvalidKeyError,
  InvalidOptionError,
  LockContendedError,
  MemoryStore,
  StampedeCache,
  StampedeCacheModule,
  WithLock,
} from 'nestjs-stampede-cache';
import { keptLogger, moment, startApp } from './apps.js';

interface Product {
  readonly id: string;
  readonly version: number;
}

@Injectable()
class Products {
  queries = 0;
  version = 1;

  @CacheAside((id) => ['product', id], '60s')
  async find(id: string): Promise<Product> {
    this.queries += 1;
    return moment({ id, version: this.version });
  }

  @CacheAside((id) => (id === 'draft' ? undefined : ['page', id]), { ttl: (page) => (page.length > 3 ? 0 : '60s') })
  async page(id: string): Promise<string> {
    this.queries += 1;
    return moment(id);
  }

  @CacheAside(
    function (this: Products, id) {
      return `${this.version}:${id}`;
    },
    { ttl: '60s', cacheIf: (found) => found !== null },
  )
  async versioned(id: string): Promise<string | null> {
    this.queries += 1;
    return moment(id === 'none' ? null : id);
  }

  /** Calls itself through the cache. */
  async findAll(ids: string[]): Promise<Product[]> {
    return Promise.all(ids.map((id) => this.find(id)));
  }

  @CacheEvict((id) => ['product', id])
  async update(id: string, fail = false): Promise<string> {
    if (fail) throw new Error('no such product');
    this.version += 1;
    return `updated ${id}`;
  }

  @CachePut((id) => ['product', id], '60s')
  async replace(id: string, version: number): Promise<Product> {
    if (version < 0) throw new Error('no such version');
    return { id, version };
  }

  @CachePut(() => ['product', '1'], '60s')
  async replaceByWhatIsNoJson(): Promise<unknown> {
    return { version: 1n };
  }
}

async function setUp(options = {}) {
  const app = await startApp({ imports: [StampedeCacheModule.forTest(options)], providers: [Products] });
  return { products: app.get(Products), cache: app.get(StampedeCache) };
}

describe('@CacheAside', () => {
  it('S1: 50 concurrent calls on a cold key run the method once', async () => {
    const { products } = await setUp();
    const found = await Promise.all(Array.from({ length: 50 }, () => products.find('1')));
    expect(products.queries).toBe(1);
    expect(found).toEqual(Array(50).fill({ id: '1', version: 1 }));
  });

  it('caches by key, and calls by this as well', async () => {
    const { products, cache } = await setUp();
    await products.findAll(['1', '2', '1']);
    await products.find('1');
    expect(products.queries).toBe(2);
    expect(await cache.get('product:1')).toEqual({ id: '1', version: 1 });
  });

  it('K3: runs the method uncached when the key is undefined', async () => {
    const { products } = await setUp();
    await products.page('draft');
    await products.page('draft');
    expect(products.queries).toBe(2);
  });

  it('takes the ttl from the result', async () => {
    const { products } = await setUp();
    for (const id of ['one', 'three', 'one', 'three']) await products.page(id);
    expect(products.queries).toBe(3);
  });

  it('calls the key function with the instance as this, and asks cacheIf', async () => {
    const { products, cache } = await setUp();
    for (const id of ['a', 'none', 'a', 'none']) await products.versioned(id);
    expect(products.queries).toBe(3);
    expect(await cache.has('1:a')).toBe(true);
    products.version = 2;
    await products.versioned('a');
    expect(products.queries).toBe(4);
  });

  it('gives the error of the method as it was thrown, and caches none', async () => {
    const error = new Error('the database is away');
    @Injectable()
    class Failing {
      calls = 0;
      @CacheAside(() => 'failing', '60s')
      async find(): Promise<string> {
        this.calls += 1;
        throw error;
      }
    }
    const app = await startApp({ imports: [StampedeCacheModule.forTest()], providers: [Failing] });
    const failing = app.get(Failing);
    await expect(failing.find()).rejects.toBe(error);
    await expect(failing.find()).rejects.toBe(error);
    expect(failing.calls).toBe(2);
  });

  it.each([[{ id: 1 }], [1], [''], [[]], [null], [Promise.resolve('key')], [[{}]]])(
    'K3: %p is no key, and the error names the method',
    async (key) => {
      @Injectable()
      class Wrong {
        calls = 0;
        @CacheAside(() => key as string, '60s')
        async find(): Promise<string> {
          this.calls += 1;
          return 'value';
        }
      }
      const app = await startApp({ imports: [StampedeCacheModule.forTest()], providers: [Wrong] });
      const found = app.get(Wrong).find();
      await expect(found).rejects.toThrow(InvalidKeyError);
      await expect(found).rejects.toThrow(/^The key that the key function of Wrong\.find returned must be/);
      expect(app.get(Wrong).calls).toBe(0);
    },
  );
});

describe('@CacheEvict', () => {
  it('evicts after the method succeeded, and not when it failed', async () => {
    const { products } = await setUp();
    await products.find('1');
    await expect(products.update('1', true)).rejects.toThrow('no such product');
    expect(await products.find('1')).toEqual({ id: '1', version: 1 });
    expect(await products.update('1')).toBe('updated 1');
    expect(await products.find('1')).toEqual({ id: '1', version: 2 });
    expect(products.queries).toBe(2);
  });

  it('returns the result all the same when the eviction failed; a line in the log names method and key', async () => {
    const logger = keptLogger();
    const store = new MemoryStore();
    const { products, cache } = await setUp({ store, logger });
    const events: string[] = [];
    cache.events.subscribe(({ type }) => events.push(type));
    store.replace = () => Promise.reject(new Error('READONLY'));
    expect(await products.update('1')).toBe('updated 1');
    expect(logger.lines.filter((line) => line.includes('Products.update'))).toEqual([
      expect.stringMatching(/^error: After Products\.update the key 'product:1' was not evicted/),
    ]);
    expect(events).toEqual(['store-error', 'evict-failed']);
  });

  it("throws when the eviction failed, with onEvictError: 'throw'", async () => {
    @Injectable()
    class Strict {
      @CacheEvict((id) => ['product', id], { onEvictError: 'throw' })
      async update(id: string): Promise<string> {
        return id;
      }
    }
    const store = new MemoryStore();
    store.replace = () => Promise.reject(new Error('READONLY'));
    const module = await Test.createTestingModule({
      imports: [StampedeCacheModule.forTest({ store })],
      providers: [Strict],
    }).compile();
    await expect(module.get(Strict).update('1')).rejects.toMatchObject({ code: 'CACHE_EVICTION', keys: ['product:1'] });
    await module.close();
  });
});

describe('@CachePut', () => {
  it('stores what the method returned', async () => {
    const { products } = await setUp();
    await products.find('1');
    expect(await products.replace('1', 7)).toEqual({ id: '1', version: 7 });
    expect(await products.find('1')).toEqual({ id: '1', version: 7 });
    await expect(products.replace('1', -1)).rejects.toThrow('no such version');
    expect(await products.find('1')).toEqual({ id: '1', version: 7 });
    expect(products.queries).toBe(1);
  });

  it('returns the result all the same when it can not be stored, and evicts the old value', async () => {
    const logger = keptLogger();
    const { products, cache } = await setUp({ logger });
    await products.find('1');
    expect(await products.replaceByWhatIsNoJson()).toEqual({ version: 1n });
    expect(await cache.has('product:1')).toBe(false);
    expect(logger.lines.at(-1)).toMatch(
      /^error: What Products\.replaceByWhatIsNoJson returned was not stored as 'product:1'; the old value was evicted/,
    );
  });
});

describe('@WithLock', () => {
  @Injectable()
  class Reports {
    running = 0;
    most = 0;

    @WithLock((month) => ['report', month])
    async build(month: string): Promise<string> {
      this.running += 1;
      this.most = Math.max(this.most, this.running);
      await moment(undefined);
      this.running -= 1;
      return month;
    }

    @WithLock((month) => ['report', month], { wait: 0 })
    async tryToBuild(month: string): Promise<string> {
      return this.build(month);
    }
  }

  it('runs the method one call at a time for a key', async () => {
    const app = await startApp({ imports: [StampedeCacheModule.forTest()], providers: [Reports] });
    const reports = app.get(Reports);
    expect(await Promise.all(['may', 'may', 'may'].map((month) => reports.build(month)))).toEqual([
      'may',
      'may',
      'may',
    ]);
    expect(reports.most).toBe(1);
    await Promise.all(['may', 'june'].map((month) => reports.build(month)));
    expect(reports.most).toBe(2);
  });

  it('passes its options on', async () => {
    const app = await startApp({ imports: [StampedeCacheModule.forTest()], providers: [Reports] });
    const reports = app.get(Reports);
    const building = reports.build('may');
    await expect(reports.tryToBuild('may')).rejects.toThrow(LockContendedError);
    await building;
  });
});

describe('T1: at decoration', () => {
  const method = async () => 'value';

  it.each([['1500'], ['60 secons'], [Number.NaN], [-1], [null], [undefined]])('a ttl of %p is an error', (ttl) => {
    expect(() => CacheAside(method as never, ttl as never)).toThrow(InvalidOptionError);
    expect(() => CacheAside(method as never, { ttl } as never)).toThrow(/^ttl must be a duration/);
    expect(() => CachePut(method as never, ttl as never)).toThrow(/^ttl must be a duration/);
  });

  it.each([
    ['lease', () => CacheAside(() => 'key', { ttl: 1, lease: '5 s' as '5s' })],
    ['wait', () => WithLock(() => 'key', { wait: -1 })],
    ['renew', () => WithLock(() => 'key', { renew: 'no' as never })],
    ['cache', () => CacheEvict(() => 'key', { cache: '' })],
    ['cache', () => CacheAside(() => 'key', { ttl: 1, cache: 7 as never })],
    ['tll', () => CacheAside(() => 'key', { tll: '60s' } as never)],
    ['maxWait', () => WithLock(() => 'key', { maxWait: 1 } as never)],
    ['when', () => CacheEvict(() => 'key', { when: 'never' } as never)],
    ['signal', () => CacheAside(() => 'key', { ttl: 1, signal: AbortSignal.abort() } as never)],
    ['The key of @CacheAside', () => CacheAside('key' as never, '60s')],
  ])('a wrong %s is an error that names it', (name, decorate) => {
    expect(decorate).toThrow(expect.objectContaining({ name: 'InvalidOptionError', option: name }));
  });

  it('does not show the value of an option that is misspelled', () => {
    expect(() => CacheAside(() => 'key', { password: 'secret' } as never)).toThrow(
      /^password must be spelled as one of .*; it is no option of @CacheAside$/,
    );
  });

  it.each<[string, () => MethodDecorator]>([
    ['@CacheAside', () => CacheAside(() => 'key', '60s') as MethodDecorator],
    ['@CacheAsideMany', () => CacheAsideMany((id: string) => id, '60s' as never) as unknown as MethodDecorator],
  ])('%s twice for one cache is an error: with one key they would wait for each other', (name, make) => {
    class Service {
      async find(): Promise<unknown> {
        return [];
      }
    }
    const foreign: MethodDecorator = (_target, _property, descriptor) => {
      const method = descriptor.value as unknown as () => Promise<unknown>;
      descriptor.value = (async () => method()) as never;
    };
    const decorate = (...decorators: MethodDecorator[]) => {
      class Extended extends Service {
        override async find(): Promise<unknown> {
          return super.find();
        }
      }
      for (const each of decorators) {
        each(Extended.prototype, 'find', Object.getOwnPropertyDescriptor(Extended.prototype, 'find')!);
      }
    };
    const message = new RegExp(`^${name} is on Extended.find twice .*cache`);
    expect(() => decorate(make(), make())).toThrow(message);
    expect(() => decorate(make(), foreign, make())).toThrow(message);
    const sessions = CacheAside(() => 'key', { ttl: '60s', cache: 'sessions' }) as MethodDecorator;
    expect(() => decorate(make(), sessions)).not.toThrow();
    expect(() => decorate(make())).not.toThrow();
  });

  it('a static method or a getter is an error', () => {
    const decorate = CacheAside(() => 'key', '60s') as MethodDecorator;
    class Service {
      static async find() {}
      get found() {
        return Promise.resolve();
      }
    }
    const descriptorOf = Object.getOwnPropertyDescriptor;
    expect(() => decorate(Service, 'find', descriptorOf(Service, 'find')!)).toThrow(/Service\.find: it is static/);
    expect(() => decorate(Service.prototype, 'found', descriptorOf(Service.prototype, 'found')!)).toThrow(
      /Service\.found: it is not a method/,
    );
  });
});
