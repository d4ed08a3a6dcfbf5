import { CacheEvict, type EvictionKeys } from 'nestjs-stampede-cache';
import { describe, expect, test } from 'tstyche';

interface Product {
  readonly id: string;
  readonly category: string;
}

describe('@CacheEvict', () => {
  test('takes several keys, of the arguments and of the result', () => {
    class Products {
      readonly region = 'eu';

      @CacheEvict({ keys: (id, category) => [['product', id.trim()], ['category', category], 'all', undefined] })
      async move(_id: string, _category: string): Promise<void> {}
      @CacheEvict({
        keysOfResult: (product, id) => [
          ['product', id.trim()],
          ['category', product.category],
        ],
      })
      async update(id: string): Promise<Product> {
        return { id, category: '' };
      }
      @CacheEvict({
        keys: (id) => (id === '' ? undefined : [id.trim()]),
        keysOfResult: (product) => product && [product.category],
      })
      async updateOrNot(id: string): Promise<Product | undefined> {
        return id === '' ? undefined : { id, category: '' };
      }
      @CacheEvict(
        {
          keys(this: Products, id) {
            return [[this.region, id]];
          },
        },
        { when: 'both', cache: 'other', onEvictError: 'throw' },
      )
      async inRegion(_id: string): Promise<void> {}
      @CacheEvict((id) => ['product', id.trim()], { when: 'before' })
      async remove(_id: string): Promise<void> {}
    }
    expect<typeof Products>().type.toBeConstructableWith();
  });

  test('must fit', () => {
    class Products {
      // @ts-expect-error is not assignable to type '(_id: string) => EvictedKeys'
      @CacheEvict({ keys: (id: number) => [['product', id]] })
      async remove(_id: string): Promise<void> {}
      // @ts-expect-error Property 'colour' does not exist on type 'Product'
      @CacheEvict({ keysOfResult: (product) => [product.colour] })
      async update(id: string): Promise<Product> {
        return { id, category: '' };
      }
      // @ts-expect-error is not assignable to type 'EvictedKeys'
      @CacheEvict({ keys: (id) => id })
      async move(_id: string): Promise<void> {}
    }
    expect<typeof Products>().type.toBeConstructableWith();
    const key = () => 'key';
    expect(CacheEvict).type.not.toBeCallableWith(key, { when: 'never' });
    expect(CacheEvict).type.not.toBeCallableWith(['key']);
    expect(CacheEvict).type.not.toBeCallableWith({ keyss: key });
    expect<EvictionKeys<(id: string) => Promise<void>>>().type.toBeAssignableFrom<{ keys: (id: string) => string[] }>();
  });
});
