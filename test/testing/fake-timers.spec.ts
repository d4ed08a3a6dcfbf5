/** What docs/testing.md says of jest's own fake timers. */
import { afterEach, expect, it, jest } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { CacheAside, StampedeCacheModule } from 'nestjs-stampede-cache';
import { createTestKit } from 'nestjs-stampede-cache/testing';

@Injectable()
class Products {
  loads = 0;
  @CacheAside((id) => ['product', id], '60s')
  async find(id: string): Promise<string> {
    this.loads += 1;
    return id;
  }
}

let app: TestingModule;
afterEach(async () => {
  jest.useRealTimers();
  await app.close();
});

it('with all of them faked, calls wait until the test moves them', async () => {
  app = await Test.createTestingModule({ imports: [StampedeCacheModule.forTest()], providers: [Products] }).compile();
  jest.useFakeTimers();
  const finding = app.get(Products).find('1');
  await Promise.resolve();
  expect(app.get(Products).loads).toBe(0);
  await jest.advanceTimersByTimeAsync(1);
  expect(await finding).toBe('1');
});

it('with nextTick and queueMicrotask left alone, calls answer, and values expire when the test says so', async () => {
  app = await Test.createTestingModule({ imports: [StampedeCacheModule.forTest()], providers: [Products] }).compile();
  const products = app.get(Products);
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask'] });
  await products.find('1');
  jest.advanceTimersByTime(59_999);
  await products.find('1');
  expect(products.loads).toBe(1);
  jest.advanceTimersByTime(1);
  await products.find('1');
  expect(products.loads).toBe(2);
});

it('the clock of the kit moves on beside them', async () => {
  const kit = createTestKit();
  app = await Test.createTestingModule({ imports: [kit.module], providers: [Products] }).compile();
  const products = app.get(Products);
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask'] });
  await products.find('1');
  await kit.clock.advance('60s');
  await products.find('1');
  expect(products.loads).toBe(2);
});
