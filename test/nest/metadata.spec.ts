import { describe, expect, it } from '@jest/globals';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Header,
  HttpCode,
  Injectable,
  Param,
  SetMetadata,
  UseGuards,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { CacheAside, CacheEvict, CachePut, StampedeCacheModule, WithLock } from 'nestjs-stampede-cache';
import { listen } from './apps.js';

/** As other packages do: metadata on the function, some of it a list that grows, and properties of the function. */
const Tag =
  (tag: string): MethodDecorator =>
  (_target, _property, descriptor) => {
    const handler = descriptor.value as unknown as object & { tags?: string[] };
    Reflect.defineMetadata('tags', [...(Reflect.getMetadata('tags', handler) ?? []), tag], handler);
    handler.tags = [...(handler.tags ?? []), tag];
  };

@Injectable()
class RolesGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}
  canActivate(context: ExecutionContext): boolean {
    return this.reflector.get<string>('role', context.getHandler()) !== 'admin';
  }
}

@Controller('pages')
class Pages {
  loads = 0;

  @CacheAside((id) => ['above', id], '60s')
  @Get('above/:id')
  @HttpCode(203)
  @Header('x-page', 'yes')
  async above(@Param('id') id: string): Promise<{ id: string; load: number }> {
    return { id, load: ++this.loads };
  }

  @Get('below/:id')
  @HttpCode(203)
  @Header('x-page', 'yes')
  @CacheAside((id) => ['below', id], '60s')
  async below(@Param('id') id: string): Promise<{ id: string; load: number }> {
    return { id, load: ++this.loads };
  }

  @UseGuards(RolesGuard)
  @SetMetadata('role', 'admin')
  @CacheAside(() => 'guarded above', '60s')
  @Get('guarded-above')
  async guardedAbove(): Promise<string> {
    return 'secret';
  }

  @CacheAside(() => 'guarded below', '60s')
  @UseGuards(RolesGuard)
  @SetMetadata('role', 'admin')
  @Get('guarded-below')
  async guardedBelow(): Promise<string> {
    return 'secret';
  }
}

describe('N1', () => {
  it.each(['above', 'below'])('works %s the decorators of a route', async (path) => {
    const { app, url } = await listen({ imports: [StampedeCacheModule.forTest()], controllers: [Pages] });
    for (let request = 0; request < 3; request += 1) {
      const response = await fetch(`${url}/pages/${path}/7`);
      expect(response.status).toBe(203);
      expect(response.headers.get('x-page')).toBe('yes');
      expect(await response.json()).toEqual({ id: '7', load: 1 });
    }
    expect(app.get(Pages).loads).toBe(1);
  });

  it.each(['guarded-above', 'guarded-below'])('the guard still denies: %s', async (path) => {
    const { url } = await listen({ imports: [StampedeCacheModule.forTest()], controllers: [Pages] });
    expect((await fetch(`${url}/pages/${path}`)).status).toBe(403);
  });

  it.each<[string, MethodDecorator, MethodDecorator?]>([
    // A second one for the same cache is an error.
    [
      '@CacheAside',
      CacheAside(() => 'key', '60s') as MethodDecorator,
      CacheAside(() => 'key', { ttl: '60s', cache: 'other' }) as MethodDecorator,
    ],
    ['@CacheEvict', CacheEvict(() => 'key') as MethodDecorator],
    ['@CachePut', CachePut(() => 'key', '60s') as MethodDecorator],
    ['@WithLock', WithLock(() => 'key') as MethodDecorator],
  ])('%s keeps name, length, metadata and properties, in whatever order', (_name, decorator, again = decorator) => {
    class Service {
      @Tag('outer')
      @decorator
      @Tag('middle')
      @again
      @Tag('inner')
      async find(_id: string, _locale: string): Promise<void> {}
    }
    const { find } = Service.prototype;
    expect(find.name).toBe('find');
    expect(find.length).toBe(2);
    expect(Reflect.getMetadata('tags', find)).toEqual(['inner', 'middle', 'outer']);
    expect((find as unknown as { tags: string[] }).tags).toEqual(['inner', 'middle', 'outer']);
    expect(Object.getOwnPropertyDescriptor(Service.prototype, 'find')).toMatchObject({
      enumerable: false,
      configurable: true,
      writable: true,
    });
  });
});
