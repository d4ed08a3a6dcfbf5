/** Where there is no HTTP response: GraphQL, messages, WebSockets. Only an explicit `key` caches, and only what is asked. */
import { createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { Controller, type ExecutionContext, Get, type INestApplication } from '@nestjs/common';
import {
  Args,
  Field,
  GqlExecutionContext,
  GraphQLISODateTime,
  GraphQLModule,
  Mutation,
  ObjectType,
  Query,
  ResolveField,
  Resolver,
  Root,
} from '@nestjs/graphql';
import {
  type ClientProxy,
  ClientProxyFactory,
  EventPattern,
  MessagePattern,
  Payload,
  Transport,
} from '@nestjs/microservices';
import { WsAdapter } from '@nestjs/platform-ws';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { CacheResponse, responsesOf, StampedeCache, StampedeCacheModule } from 'nestjs-stampede-cache';
import { firstValueFrom, from, lastValueFrom, Observable, toArray } from 'rxjs';
import { WebSocket } from 'ws';
import { eventually } from '../../support/eventually.js';
import { closeAfterTest, keptLogger, moment, startApp } from '../apps.js';
import { crowd, raw } from './http-app.js';

let runs = 0;
beforeEach(() => {
  runs = 0;
});

describe('GraphQL', () => {
  @ObjectType()
  class Book {
    @Field(() => String) id!: string;
    @Field(() => Number) run!: number;
    @Field(() => GraphQLISODateTime, { nullable: true }) at?: Date;
  }

  const idOf = (context: ExecutionContext) => {
    const { id, user } = GqlExecutionContext.create(context).getArgs();
    return [id, user];
  };

  @Resolver(() => Book)
  class Books {
    @Query(() => Book)
    @CacheResponse({ ttl: '60s', key: idOf })
    async book(
      @Args('id', { type: () => String }) id: string,
      @Args('user', { type: () => String, nullable: true }) _user?: string,
    ) {
      return moment({ id, run: ++runs });
    }
    @Query(() => Book)
    @CacheResponse('60s')
    async plain(@Args('id', { type: () => String }) id: string) {
      return { id, run: ++runs };
    }
    @Query(() => Book)
    @CacheResponse({ ttl: '60s', key: () => 'dated' })
    async dated() {
      return { id: 'dated', run: ++runs, at: new Date(0) };
    }
    @Mutation(() => Book)
    @CacheResponse({ ttl: '60s', key: () => 'change' })
    async change() {
      return { id: 'changed', run: ++runs };
    }
    @ResolveField(() => String)
    shelf(@Root() book: Book): string {
      return `shelf of ${book.id}`;
    }
  }

  async function start(resolvers: (new () => object)[] = [Books]) {
    const logger = keptLogger();
    const app = await startApp({
      imports: [
        StampedeCacheModule.forTest({ logger }),
        GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true }),
      ],
      providers: resolvers,
    });
    await app.listen(0, '127.0.0.1');
    const port = Number(new URL(await app.getUrl()).port);
    const ask = async (query: string) => {
      const { json } = await raw(port, '/graphql', {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer somebody' },
        body: JSON.stringify({ query }),
      });
      if (json.errors) throw new Error(JSON.stringify(json.errors));
      return json.data as Record<string, unknown>;
    };
    return { ask, logger };
  }

  it('S1: a key caches a query; its fields are resolved for each', async () => {
    const { ask } = await start();
    const answers = await crowd(10, () => ask('{ book(id: "1") { id run shelf } }'));
    for (const { book } of answers) expect(book).toEqual({ id: '1', run: 1, shelf: 'shelf of 1' });
    expect(
      await ask('{ book(id: "1") { id } other: book(id: "2") { run } mine: book(id: "1", user: "ada") { run } }'),
    ).toEqual({
      book: { id: '1' },
      other: { run: expect.any(Number) },
      mine: { run: expect.any(Number) },
    });
    expect(runs).toBe(3);
  });

  it('without a key, and for a mutation, the resolver answers', async () => {
    const { ask } = await start();
    for (const query of [
      '{ plain(id: "1") { run } }',
      '{ plain(id: "1") { run } }',
      'mutation { change { run } }',
      'mutation { change { run } }',
    ])
      await ask(query);
    expect(runs).toBe(4);
  });

  it('classes that share a name, made by a function, do not answer for each other', async () => {
    const made = ['product', 'person'].map((name) => {
      @Resolver()
      class Made {
        @Query(() => String, { name })
        @CacheResponse({ ttl: '60s', key: idOf })
        find(@Args('id', { type: () => String }) id: string): string {
          runs += 1;
          return `${name} ${id}`;
        }
      }
      return Made;
    });
    const { ask } = await start(made);
    for (let round = 0; round < 2; round += 1)
      expect(await ask('{ product(id: "1") person(id: "1") alias: person(id: "1") }')).toEqual({
        product: 'product 1',
        person: 'person 1',
        alias: 'person 1',
      });
    expect(runs).toBe(2);
  });

  it('V2: what JSON would change is not stored, and one warning says so', async () => {
    const { ask, logger } = await start();
    for (const run of [1, 2])
      expect((await ask('{ dated { at run } }')).dated).toEqual({ at: '1970-01-01T00:00:00.000Z', run });
    expect(logger.lines.filter((line) => line.startsWith('warn'))).toEqual([
      expect.stringContaining('Books.dated has @CacheResponse(), but answers with an instance of Date'),
    ]);
  });
});

describe('a microservice', () => {
  @Controller()
  class Messages {
    @MessagePattern('sum')
    @CacheResponse({ ttl: '60s', key: (context) => context.switchToRpc().getData() })
    async sum(@Payload() numbers: number[]): Promise<object> {
      return moment({ sum: numbers.reduce((a, b) => a + b, 0), run: ++runs });
    }
    @MessagePattern('several')
    @CacheResponse({ ttl: '60s', key: () => 'several' })
    several(): Observable<number> {
      runs += 1;
      return from([1, 2, 3]);
    }
    @MessagePattern('evictable')
    @CacheResponse({ ttl: '60s', key: () => 'all', evictBy: (context) => context.switchToRpc().getData<number[]>() })
    evictable(): object {
      return { run: ++runs };
    }
    @MessagePattern('plain')
    @CacheResponse('60s')
    plain(): object {
      return { run: ++runs };
    }
    @EventPattern('happened')
    @CacheResponse({ ttl: '60s', key: () => 'happened' })
    happened(@Payload() _data: unknown): void {
      runs += 1;
    }
    @Get('page')
    @CacheResponse('60s')
    page(): object {
      return { run: ++runs };
    }
  }

  let client: ClientProxy | undefined;
  afterEach(() => client?.close());

  async function start(controllers: (new () => object)[] = [Messages]) {
    const port = await freePort();
    const app = await startApp({ imports: [StampedeCacheModule.forTest()], controllers });
    app.connectMicroservice(
      { transport: Transport.TCP, options: { port, host: '127.0.0.1' } },
      { inheritAppConfig: true },
    );
    await app.startAllMicroservices();
    await app.listen(0, '127.0.0.1');
    client = ClientProxyFactory.create({ transport: Transport.TCP, options: { port, host: '127.0.0.1' } });
    await client.connect();
    const connected = client;
    return {
      cache: app.get(StampedeCache),
      http: Number(new URL(await app.getUrl()).port),
      ask: (pattern: string | object, data: unknown = {}) => firstValueFrom(connected.send(pattern, data)),
      askAll: (pattern: string) => lastValueFrom(connected.send(pattern, {}).pipe(toArray())),
      tell: (pattern: string) => lastValueFrom(connected.emit(pattern, {}), { defaultValue: undefined }),
    };
  }

  it('S1: a key caches a message', async () => {
    const { ask } = await start();
    const answers = await crowd(10, () => ask('sum', [1, 2]));
    expect(new Set(answers.map(({ run }) => run)).size).toBe(1);
    expect(await ask('sum', [1, 2])).toEqual({ sum: 3, run: 1 });
    expect(await ask('sum', [2, 2])).toEqual({ sum: 4, run: 2 });
  });

  it('classes that share a name, made by a function, do not answer for each other', async () => {
    const patterns = ['a', 'b', { cmd: 'a' }];
    const made = patterns.map((pattern) => {
      @Controller()
      class Made {
        @MessagePattern(pattern)
        @CacheResponse({ ttl: '60s', key: () => 'same' })
        find(): object {
          runs += 1;
          return { pattern };
        }
      }
      return Made;
    });
    const { ask } = await start(made);
    for (const pattern of [...patterns, ...patterns]) expect(await ask(pattern)).toEqual({ pattern });
    expect(runs).toBe(3);
  });

  it('a hit answers with as many values as the handler', async () => {
    const { askAll } = await start();
    for (let request = 0; request < 3; request += 1) expect(await askAll('several')).toEqual([1, 2, 3]);
    expect(runs).toBe(1);
  });

  it('evictBy says by what an answer is evicted', async () => {
    const { ask, cache } = await start();
    for (const run of [1, 1]) expect(await ask('evictable', [1])).toEqual({ run });
    await cache.evict([responsesOf([2]), responsesOf(['1'])]);
    expect(await ask('evictable', [1])).toEqual({ run: 1 });
    await cache.evict(responsesOf([1]));
    expect(await ask('evictable', [1])).toEqual({ run: 2 });
  });

  it('without a key, and for events, the handler runs; HTTP beside it is cached', async () => {
    const { ask, tell, http } = await start();
    for (const run of [1, 2]) expect(await ask('plain')).toEqual({ run });
    for (let event = 0; event < 2; event += 1) await tell('happened');
    await eventually(() => runs === 4, { within: 20_000 });
    for (let request = 0; request < 2; request += 1) expect((await raw(http, '/page')).json.run).toBe(5);
  });
});

describe('a WebSocket gateway', () => {
  @WebSocketGateway()
  class Gateway {
    @SubscribeMessage('ask')
    @CacheResponse({ ttl: '60s', key: () => 'asked' })
    ask(): object {
      return { event: 'answer', data: ++runs };
    }
  }

  it('answers by itself, key or not', async () => {
    const app: INestApplication = await startApp(
      { imports: [StampedeCacheModule.forTest()], providers: [Gateway] },
      undefined,
      (app) => app.useWebSocketAdapter(new WsAdapter(app)),
    );
    closeAfterTest(app);
    await app.listen(0, '127.0.0.1');
    const socket = new WebSocket((await app.getUrl()).replace('http', 'ws'));
    const answers: unknown[] = [];
    socket.on('message', (text) => answers.push(JSON.parse(String(text)).data));
    await new Promise((resolve) => socket.once('open', resolve));
    for (let message = 0; message < 2; message += 1) socket.send(JSON.stringify({ event: 'ask', data: {} }));
    await eventually(() => answers.length === 2, { within: 20_000 });
    expect(answers).toEqual([1, 2]);
    socket.terminate();
  });
});

/** One that nobody listens on just now. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
