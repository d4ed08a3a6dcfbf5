import { describe, expect, it } from '@jest/globals';
import { Controller, Get, Inject, Injectable, Param, type Provider, Scope, type Type } from '@nestjs/common';
import { type ContextId, ContextIdFactory, type HostComponentInfo, REQUEST } from '@nestjs/core';
import { CacheAside, CacheEvict, StampedeCache, StampedeCacheModule, WithLock } from 'nestjs-stampede-cache';
import { listen, startApp } from './apps.js';

let made = 0;
let loads = 0;

abstract class Numbered {
  readonly number = ++made;

  @CacheAside((id) => ['numbered', id], '60s')
  async find(id: string): Promise<{ id: string; by: number }> {
    loads += 1;
    return { id, by: this.number };
  }

  @CacheEvict((id) => ['numbered', id])
  async update(_id: string): Promise<void> {}
}

@Injectable({ scope: Scope.REQUEST })
class RequestScoped extends Numbered {
  constructor(@Inject(REQUEST) readonly request: { headers: Record<string, string> }) {
    super();
  }
}

@Injectable({ scope: Scope.REQUEST, durable: true })
class Durable extends Numbered {}

@Injectable({ scope: Scope.TRANSIENT })
class Transient extends Numbered {}

@Injectable()
class Singleton extends Numbered {}

function controllerOf(service: Type<Numbered>): Type {
  @Controller()
  class Numbers {
    constructor(@Inject(service) readonly numbered: Numbered) {}
    @Get(':id')
    async find(@Param('id') id: string) {
      return { ...(await this.numbered.find(id)), me: this.numbered.number };
    }
  }
  return Numbers;
}

describe('N3: scopes', () => {
  it.each<[string, Type<Numbered>, number]>([
    ['request-scoped', RequestScoped, 3],
    ['durable', Durable, 1],
    ['transient', Transient, 1],
    ['singleton', Singleton, 1],
  ])('%s instances share what one has loaded', async (_name, service, instances) => {
    made = 0;
    loads = 0;
    // Every request is of the same tenant.
    const tenant = ContextIdFactory.create();
    ContextIdFactory.apply({
      attach: (contextId: ContextId) => (info: HostComponentInfo) => (info.isTreeDurable ? tenant : contextId),
    });
    const providers: Provider[] = [service];
    const { app, url } = await listen({
      imports: [StampedeCacheModule.forTest()],
      controllers: [controllerOf(service)],
      providers,
    });
    made = 0;
    const answers: { me: number }[] = [];
    for (let request = 0; request < 3; request += 1) {
      answers.push((await (await fetch(`${url}/7`)).json()) as { me: number });
    }
    expect(loads).toBe(1);
    expect(answers).toMatchObject(Array(3).fill({ id: '7', by: answers[0]?.me }));
    expect(new Set(answers.map(({ me }) => me)).size).toBe(instances);
    await app.get(StampedeCache).evict('numbered:7');
    await fetch(`${url}/7`);
    expect(loads).toBe(2);
  });
});

describe('N3: base and subclass', () => {
  const calls: string[] = [];

  @Injectable()
  class Animals {
    protected readonly kind: string = 'animal';

    @CacheAside((id) => ['animal', id], '60s')
    async find(id: string): Promise<string> {
      calls.push(`base ${this.kind}`);
      return `${this.kind} ${id}`;
    }

    @WithLock((id) => ['animal', id], { wait: 0 })
    async locked(id: string): Promise<string> {
      return `locked ${id}`;
    }
  }

  @Injectable()
  class Inheriting extends Animals {
    protected override readonly kind = 'inheriting';
  }

  @Injectable()
  class WithOwnKey extends Animals {
    protected override readonly kind = 'cat';

    @CacheAside((id) => ['cat', id], '60s')
    override async find(id: string): Promise<string> {
      calls.push(`sub ${this.kind}`);
      return `(${await super.find(id)})`;
    }
  }

  @Injectable()
  class WithTheSameKey extends Animals {
    protected override readonly kind = 'dog';

    @CacheAside((id) => ['animal', id], '60s')
    override async find(id: string): Promise<string> {
      await Promise.resolve();
      return `[${await super.find(id)}]`;
    }

    @WithLock((id) => ['animal', id], { wait: 0 })
    override async locked(id: string): Promise<string> {
      return `[${await super.locked(id)}]`;
    }
  }

  @Injectable()
  class Plain extends Animals {
    override async find(id: string): Promise<string> {
      return `plain ${await super.find(id)}`;
    }
  }

  async function start<T extends Animals>(service: Type<T>) {
    calls.length = 0;
    const app = await startApp({ imports: [StampedeCacheModule.forTest()], providers: [service] });
    return { animals: app.get(service), cache: app.get(StampedeCache) };
  }

  it('an inherited method has the right this, and is wrapped once', async () => {
    const { animals, cache } = await start(Inheriting);
    const reads: string[] = [];
    cache.events.subscribe(({ type }) => reads.push(type));
    expect(await animals.find('1')).toBe('inheriting 1');
    expect(await animals.find('1')).toBe('inheriting 1');
    expect(calls).toEqual(['base inheriting']);
    expect(reads).toEqual(['miss', 'load', 'fill', 'hit']);
  });

  it('an override has its own key, and super the other', async () => {
    const { animals, cache } = await start(WithOwnKey);
    expect(await animals.find('1')).toBe('(cat 1)');
    expect(await cache.get('cat:1')).toBe('(cat 1)');
    expect(await cache.get('animal:1')).toBe('cat 1');
    await cache.evict('cat:1');
    expect(await animals.find('1')).toBe('(cat 1)');
    expect(calls).toEqual(['sub cat', 'base cat', 'sub cat']);
  });

  it('an override with the same key does not wait for itself', async () => {
    const { animals, cache } = await start(WithTheSameKey);
    expect(await Promise.all([animals.find('1'), animals.find('1')])).toEqual(['[dog 1]', '[dog 1]']);
    expect(await cache.get('animal:1')).toBe('[dog 1]');
    expect(calls).toEqual(['base dog']);
    expect(await animals.locked('1')).toBe('[locked 1]');
  });

  it('an override without decorator is not cached, but what it calls by super is', async () => {
    const { animals } = await start(Plain);
    expect(await animals.find('1')).toBe('plain animal 1');
    expect(await animals.find('1')).toBe('plain animal 1');
    expect(calls).toEqual(['base animal']);
  });

  it('works in an abstract generic base and in a mixin', async () => {
    abstract class Repository<E> {
      loads = 0;
      abstract load(id: string): Promise<E>;
      @CacheAside(function (this: Repository<unknown>, id) {
        return [this.constructor.name, id];
      }, '60s')
      async find(id: string): Promise<E> {
        this.loads += 1;
        return this.load(id);
      }
    }
    const Audited = (Base: abstract new () => Repository<string>) => {
      abstract class Mixin extends Base {
        override async load(id: string): Promise<string> {
          return `audited ${id}`;
        }
      }
      return Mixin;
    };
    @Injectable()
    class Cats extends Audited(Repository<string>) {}
    @Injectable()
    class Dogs extends Repository<number> {
      async load(id: string): Promise<number> {
        return Number(id);
      }
    }
    const app = await startApp({ imports: [StampedeCacheModule.forTest()], providers: [Cats, Dogs] });
    for (let call = 0; call < 2; call += 1) {
      expect(await app.get(Cats).find('1')).toBe('audited 1');
      expect(await app.get(Dogs).find('1')).toBe(1);
    }
    expect([app.get(Cats).loads, app.get(Dogs).loads]).toEqual([1, 1]);
  });
});
