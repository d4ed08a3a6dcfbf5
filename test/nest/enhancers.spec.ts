/** Decorated methods of whatever Nest makes beside services: guards, pipes, filters, interceptors; and of modules that come late. */
import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  HttpException,
  Injectable,
  Module,
  type NestInterceptor,
  NotFoundException,
  Param,
  type PipeTransform,
  Scope,
  UseFilters,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { APP_GUARD, LazyModuleLoader } from '@nestjs/core';
import { CacheAside, CacheEvict, CacheResponse, StampedeCache, StampedeCacheModule } from 'nestjs-stampede-cache';
import { type Observable } from 'rxjs';
import { listen, startApp } from './apps.js';

const loads: string[] = [];
beforeEach(() => {
  loads.length = 0;
});

const userOf = (context: ExecutionContext): string =>
  String(context.switchToHttp().getRequest().headers['x-user'] ?? 'nobody');

@Injectable()
class Guard implements CanActivate {
  @CacheAside((context) => ['may', userOf(context)], '60s')
  async canActivate(context: ExecutionContext): Promise<boolean> {
    loads.push(`guard ${userOf(context)}`);
    return userOf(context) !== 'mallory';
  }
}

@Injectable()
class Pipe implements PipeTransform {
  @CacheAside((id) => ['resolved', id], '60s')
  async transform(id: string): Promise<string> {
    loads.push(`pipe ${id}`);
    return `number ${id}`;
  }
}

@Injectable({ scope: Scope.REQUEST })
class Interceptor implements NestInterceptor {
  async intercept(_context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    await this.settings();
    return next.handle();
  }

  @CacheAside(() => 'settings', '60s')
  async settings(): Promise<object> {
    loads.push('interceptor');
    return {};
  }
}

@Catch(HttpException)
class Filter implements ExceptionFilter<HttpException> {
  async catch(exception: HttpException, host: ArgumentsHost): Promise<void> {
    const text = await this.textOf(exception.getStatus());
    host.switchToHttp().getResponse().status(exception.getStatus()).json({ text });
  }

  @CacheAside((status) => ['text', status], '60s')
  async textOf(status: number): Promise<string> {
    loads.push(`filter ${status}`);
    return `status ${status}`;
  }
}

@Controller()
@UseGuards(Guard)
@UseInterceptors(Interceptor)
@UseFilters(Filter)
class Things {
  @Get('things/:id')
  find(@Param('id', Pipe) id: string): string {
    if (id === 'number 404') throw new NotFoundException();
    return id;
  }
}

describe('enhancers', () => {
  it('are cached as services are', async () => {
    const { url } = await listen({ imports: [StampedeCacheModule.forTest()], controllers: [Things] });
    const ask = async (id: string, user = 'ada') =>
      (await fetch(`${url}/things/${id}`, { headers: { 'x-user': user } })).text();
    for (let visit = 0; visit < 2; visit += 1) {
      expect(await ask('7')).toBe('number 7');
      expect(JSON.parse(await ask('404'))).toEqual({ text: 'status 404' });
      expect(JSON.parse(await ask('7', 'mallory'))).toEqual({ text: 'status 403' });
    }
    expect(loads).toEqual([
      'guard ada',
      'interceptor',
      'pipe 7',
      'pipe 404',
      'filter 404',
      'guard mallory',
      'filter 403',
    ]);
  });

  it('so is a global guard, which decides before a cached response is given', async () => {
    @Controller()
    class Pages {
      @Get()
      @CacheResponse({ ttl: '60s', shared: true })
      page(): string {
        loads.push('page');
        return 'page';
      }
    }
    const { url } = await listen({
      imports: [StampedeCacheModule.forTest()],
      controllers: [Pages],
      providers: [{ provide: APP_GUARD, useClass: Guard }],
    });
    const statuses = [];
    for (const user of ['ada', 'mallory', 'ada', 'mallory'])
      statuses.push((await fetch(url, { headers: { 'x-user': user } })).status);
    expect(statuses).toEqual([200, 403, 200, 403]);
    expect(loads).toEqual(['guard ada', 'page', 'guard mallory']);
  });
});

describe('a module that is loaded late', () => {
  @Injectable()
  class Late {
    @CacheAside(() => 'late', '60s')
    async find(): Promise<string> {
      loads.push('late');
      return 'late';
    }
    @CacheEvict(() => 'late')
    async change(): Promise<void> {}
  }
  @Module({ providers: [Late], exports: [Late] })
  class LateModule {}

  it('has the cache of the application', async () => {
    const app = await startApp({ imports: [StampedeCacheModule.forTest()] });
    const module = await app.get(LazyModuleLoader).load(() => LateModule);
    const late = module.get(Late);
    await Promise.all([late.find(), late.find()]);
    expect(await app.get(StampedeCache).get('late')).toBe('late');
    await late.change();
    await late.find();
    expect(loads).toEqual(['late', 'late']);
  });
});
