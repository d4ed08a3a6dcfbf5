import { Injectable, NotFoundException } from '@nestjs/common';
import { CacheAside, CacheEvict } from 'nestjs-stampede-cache';
import { Database } from './database.js';

export interface Product {
  readonly id: number;
  readonly name: string;
  readonly priceInCents: number;
  readonly orders: number;
  readonly customers: number;
  readonly unitsSold: number;
  readonly lastOrderedAt: string;
  /** Which run of the slow query this is, counted by the database: as long as it stays, the answer came from the cache. */
  readonly queryNumber: number;
}

const PRODUCT = `
  select product.id,
         product.name,
         product.price_in_cents as "priceInCents",
         sales.*,
         nextval('catalog_sample.slow_queries')::integer as "queryNumber"
    from catalog_sample.products product
   cross join lateral (
         select count(*)::integer as "orders",
                count(distinct customer_id)::integer as "customers",
                coalesce(sum(quantity), 0)::integer as "unitsSold",
                max(ordered_at)::text as "lastOrderedAt"
           from catalog_sample.order_lines
          where product_id = product.id
         ) sales
   where product.id = $1`;

@Injectable()
export class ProductsService {
  constructor(private readonly database: Database) {}

  /** From the cache; on a miss one caller queries, and everybody else, in every instance, waits for its answer. */
  @CacheAside((id) => ['product', id], '60s')
  findOne(id: number): Promise<Product> {
    return this.findOneUncached(id);
  }

  /** What the stampede is like without the cache. */
  async findOneUncached(id: number): Promise<Product> {
    const [product] = await this.database.query<Product>(PRODUCT, [id]);
    if (!product) throw new NotFoundException(`There is no product ${id}.`);
    return product;
  }

  /** Whoever asks after this resolved sees the new price, in every instance. */
  @CacheEvict((id) => ['product', id])
  async changePrice(id: number, priceInCents: number): Promise<void> {
    const changed = await this.database.query(
      'update catalog_sample.products set price_in_cents = $2 where id = $1 returning id',
      [id, priceInCents],
    );
    if (changed.length === 0) throw new NotFoundException(`There is no product ${id}.`);
  }
}
