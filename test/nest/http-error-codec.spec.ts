import { describe, expect, it } from '@jest/globals';
import {
  BadRequestException,
  ConflictException,
  HttpException,
  Injectable,
  InternalServerErrorException,
  NotFoundException,
  ServiceUnavailableException,
} from '@nestjs/common';
import {
  CacheAside,
  type ErrorCodec,
  httpErrorCodec,
  LoadTimeoutError,
  MemoryStore,
  RemoteLoadError,
  StampedeCacheModule,
} from 'nestjs-stampede-cache';
import { MemoryServer } from '../../lib/memory/memory-server.js';
import { bootError, moment, startApp } from './apps.js';

function travel(error: unknown): unknown {
  const text = httpErrorCodec.encode(error);
  return text === undefined ? undefined : httpErrorCodec.decode(text);
}

class OutOfStockException extends ConflictException {}
/** The application's own, by the name of one of Nest's. */
const Impostor = { BadRequestException: class BadRequestException extends HttpException {} }.BadRequestException;

describe('httpErrorCodec', () => {
  it.each([
    new NotFoundException(),
    new NotFoundException('There is no product 7.'),
    new NotFoundException('There is no product 7.', 'Gone fishing'),
    new NotFoundException({ code: 'NO_PRODUCT', id: 7 }),
    new BadRequestException(['name must be a string', 'price must be a number']),
    new ServiceUnavailableException('later'),
    new InternalServerErrorException(),
    new HttpException('I am a teapot', 418),
    new HttpException({ reason: 'teapot' }, 418),
  ])('%p arrives as what it was', (error) => {
    const arrived = travel(error) as HttpException;
    expect(arrived.constructor).toBe(error.constructor);
    expect(arrived.getStatus()).toBe(error.getStatus());
    expect(arrived.getResponse()).toEqual(error.getResponse());
    expect([arrived.name, arrived.message]).toEqual([error.name, error.message]);
  });

  it.each([
    [new OutOfStockException('none left'), 'OutOfStockException', 409],
    [new Impostor('wrong', 422), 'BadRequestException', 422],
  ])('%p arrives as an HttpException of that name', (error, name, status) => {
    const arrived = travel(error) as HttpException;
    expect(arrived.constructor).toBe(HttpException);
    expect([arrived.name, arrived.message, arrived.getStatus()]).toEqual([name, error.message, status]);
    expect(arrived.getResponse()).toEqual(error.getResponse());
  });

  it('leaves all others to the core', () => {
    expect(travel(new RangeError('too far'))).toBeInstanceOf(RemoteLoadError);
    expect(travel(new LoadTimeoutError('key', 5))).toBeInstanceOf(LoadTimeoutError);
    expect(travel('thrown text')).toMatchObject({ name: 'Error', message: 'thrown text' });
  });
});

describe('S8: 10 applications × 20 callers wait for a loader that throws', () => {
  let loads = 0;

  @Injectable()
  class Products {
    @CacheAside((id) => ['product', id], '60s')
    async find(id: string): Promise<string> {
      loads += 1;
      await moment(undefined);
      throw new NotFoundException({ message: `There is no product ${id}.`, code: 'NO_PRODUCT' });
    }
  }

  it('1 load, and each gets a NotFoundException with its status and response', async () => {
    const server = new MemoryServer();
    const apps = await Promise.all(
      Array.from({ length: 10 }, () =>
        startApp({
          imports: [StampedeCacheModule.forTest({ store: new MemoryStore({ server }) })],
          providers: [Products],
        }),
      ),
    );
    const callers = apps.flatMap((app) => Array.from({ length: 20 }, () => app.get(Products).find('7')));
    const errors = await Promise.all(callers.map((call) => call.catch((error: unknown) => error)));
    expect(loads).toBe(1);
    expect(errors).toHaveLength(200);
    for (const error of errors as NotFoundException[]) {
      expect(error).toBeInstanceOf(NotFoundException);
      expect(error.getStatus()).toBe(404);
      expect(error.getResponse()).toEqual({ message: 'There is no product 7.', code: 'NO_PRODUCT' });
    }
    await expect(apps[0]?.get(Products).find('7')).rejects.toThrow(NotFoundException);
    expect(loads).toBe(2);
  });
});

describe('errorCodec', () => {
  class OutOfStock extends Error {
    constructor(readonly left: number) {
      super(`${left} left`);
    }
  }
  /** The application's own errors, and what else there is. */
  const errorCodec: ErrorCodec = {
    encode: (error) => (error instanceof OutOfStock ? `stock ${error.left}` : httpErrorCodec.encode(error)),
    decode: (text) => (text.startsWith('stock ') ? new OutOfStock(Number(text.slice(6))) : httpErrorCodec.decode(text)),
  };

  @Injectable()
  class Stock {
    @CacheAside((id) => id, '60s')
    async take(id: string): Promise<number> {
      await moment(undefined);
      throw id === 'none' ? new NotFoundException() : new OutOfStock(2);
    }
  }

  it("of the module carries the application's own errors to other processes", async () => {
    const server = new MemoryServer();
    const start = () =>
      startApp({
        imports: [StampedeCacheModule.forTest({ store: new MemoryStore({ server }), errorCodec })],
        providers: [Stock],
      });
    const apps = await Promise.all([start(), start()]);
    const take = (id: string) =>
      Promise.all(
        apps.map((app) =>
          app
            .get(Stock)
            .take(id)
            .catch((error: unknown) => error),
        ),
      );
    for (const error of await take('7')) expect(error).toMatchObject({ constructor: OutOfStock, left: 2 });
    for (const error of await take('none')) expect(error).toBeInstanceOf(NotFoundException);
  });

  it.each([['json'], [null], [{ encode: () => '' }]])('that is %p is an error at boot', async (errorCodec) => {
    const error = await bootError({ imports: [StampedeCacheModule.forTest({ errorCodec: errorCodec as never })] });
    expect(error).toMatchObject({ name: 'InvalidOptionError', option: 'errorCodec' });
  });
});
