/** @nestjs/cqrs: handlers of queries are cached, handlers of commands and events evict. */
import { expect, test } from '@jest/globals';
import {
  CommandBus,
  CommandHandler,
  CqrsModule,
  EventBus,
  EventsHandler,
  type ICommandHandler,
  type IEventHandler,
  type IQueryHandler,
  Query,
  QueryBus,
  QueryHandler,
} from '@nestjs/cqrs';
import { CacheAside, CacheEvict, defineKey, StampedeCache, StampedeCacheModule, WithLock } from 'nestjs-stampede-cache';
import { expectLoads } from 'nestjs-stampede-cache/testing';
import { moment, startApp } from './apps.js';

const names = new Map([['1', 'first']]);
const productKey = defineKey('product', ({ id }: { readonly id: string }) => [id]);

class FindProduct extends Query<string> {
  constructor(readonly id: string) {
    super();
  }
}

@QueryHandler(FindProduct)
class FindProductHandler implements IQueryHandler<FindProduct> {
  @CacheAside(productKey, '60s')
  async execute({ id }: FindProduct): Promise<string> {
    return moment(names.get(id) ?? 'none');
  }
}

class RenameProduct {
  constructor(
    readonly id: string,
    readonly name: string,
  ) {}
}

@CommandHandler(RenameProduct)
class RenameProductHandler implements ICommandHandler<RenameProduct> {
  running = 0;
  most = 0;

  @CacheEvict(productKey)
  @WithLock(productKey)
  async execute({ id, name }: RenameProduct): Promise<void> {
    this.most = Math.max(this.most, ++this.running);
    names.set(id, await moment(name));
    this.running -= 1;
  }
}

class ProductImported {
  constructor(readonly id: string) {}
}

@EventsHandler(ProductImported)
class ForgetImportedProduct implements IEventHandler<ProductImported> {
  @CacheEvict(productKey)
  async handle(_event: ProductImported): Promise<void> {}
}

test('@nestjs/cqrs: queries load once, commands exclude each other and evict, events evict', async () => {
  const app = await startApp({
    imports: [CqrsModule.forRoot(), StampedeCacheModule.forTest()],
    providers: [FindProductHandler, RenameProductHandler, ForgetImportedProduct],
  });
  const [queries, commands, cache] = [app.get(QueryBus), app.get(CommandBus), app.get(StampedeCache)];
  const find = () => Promise.all(Array.from({ length: 20 }, () => queries.execute(new FindProduct('1'))));

  expect(new Set(await expectLoads(cache, { 'product~1': 1 }, find))).toEqual(new Set(['first']));
  await Promise.all(['second', 'third'].map((name) => commands.execute(new RenameProduct('1', name))));
  expect(app.get(RenameProductHandler).most).toBe(1);
  expect(new Set(await expectLoads(cache, 1, find))).toEqual(new Set([names.get('1')]));

  const evicted = new Promise((resolve) => cache.events.subscribe(({ type }) => type === 'evict' && resolve(type)));
  app.get(EventBus).publish(new ProductImported('1'));
  await evicted;
  await expectLoads(cache, 1, find);
});
