/** Criterion: the answers of two users never mix, also where a route says itself what tells requests apart. */
import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  Controller,
  Cookies,
  type ExecutionContext,
  Get,
  Headers,
  HostParam,
  Ip,
  Param,
  Query,
  Req,
  Session,
  Version,
  VersioningType,
} from '@nestjs/common';
import { CacheResponse } from 'nestjs-stampede-cache';
import { PLATFORMS } from './http-app.js';
import { type SeenRequest, start } from './mixing-app.js';

let runs = 0;
beforeEach(() => {
  runs = 0;
});

describe.each(PLATFORMS)('on %s', (platform) => {
  it('H1: a user or a certificate is not told apart by a header that stands for something else', async () => {
    const asking = (request: SeenRequest) => ({ user: request.user, run: ++runs });
    @Controller()
    class Tenants {
      @Get('named')
      @CacheResponse({ ttl: '60s', vary: ['x-tenant'] })
      named(@Req() request: SeenRequest): object {
        return asking(request);
      }
      @Get('taken')
      @CacheResponse('60s')
      taken(@Req() request: SeenRequest, @Headers('x-tenant') _tenant: string): object {
        return asking(request);
      }
      @Get('by-credential')
      @CacheResponse({ ttl: '60s', vary: ['x-tenant', 'authorization'] })
      byCredential(@Req() request: SeenRequest): object {
        return asking(request);
      }
      @Get('by-key')
      @CacheResponse({ ttl: '60s', vary: ['x-tenant'], key: (context) => [context.switchToHttp().getRequest().user] })
      byKey(@Req() request: SeenRequest): object {
        return asking(request);
      }
    }
    // Nothing in the request but its address says who it is.
    let next = '';
    const { get } = await start(platform, [Tenants], (app) =>
      app.useGlobalGuards({
        canActivate(context: ExecutionContext) {
          const request = context.switchToHttp().getRequest();
          request.user = request.headers['authorization'] ?? next;
          return true;
        },
      }),
    );
    for (const path of ['/named', '/taken', '/by-key', '/by-credential']) {
      for (const user of ['ada', 'bob', 'ada']) {
        next = user;
        const { json, headers } = await get(path, { headers: { 'x-tenant': 't' } });
        expect(json.user).toBe(user);
        if (path !== '/by-key') expect(headers['cache-status']).toBe('stampede; fwd=bypass; detail="user"');
      }
    }
    expect(runs).toBe(3 + 3 + 2 + 3);
    for (const authorization of ['ada', 'bob', 'ada', 'bob'])
      expect((await get('/by-credential', { headers: { 'x-tenant': 't', authorization } })).json.user).toBe(
        authorization,
      );
    expect(runs).toBe(3 + 3 + 2 + 3 + 2);
  });

  it('vary: each value of a header that it names has an entry; what it does not name is not shared', async () => {
    @Controller()
    class Varying {
      @Get('language')
      @CacheResponse({ ttl: '60s', vary: ['Accept-Language'] })
      language(@Headers('accept-language') language: string): object {
        return { language, run: ++runs };
      }
      @Get('who')
      @CacheResponse({ ttl: '60s', vary: ['authorization'] })
      who(@Req() { headers }: SeenRequest): object {
        return { who: headers['authorization'], cookie: headers['cookie'], run: ++runs };
      }
    }
    const { get } = await start(platform, [Varying]);
    const languages = ['en', 'de', 'en, de;q=0.5', '', 'en'];
    for (const language of languages)
      expect((await get('/language', { headers: { 'accept-language': language } })).json.language).toBe(language);
    expect((await get('/language')).json.language).toBeUndefined();
    expect(runs).toBe(5);
    await get('/language', { headers: { 'accept-language': 'en', cookie: 'session=ada' } });
    expect(runs).toBe(6);

    runs = 0;
    for (const who of ['ada', 'bob', 'ada', 'bob']) {
      const answer = await get('/who', { headers: { authorization: who } });
      expect(answer.json.who).toBe(who);
      expect(answer.headers).toMatchObject({ vary: 'authorization, Cookie' });
    }
    expect(runs).toBe(2);
    for (const cookie of ['a', 'b'])
      expect((await get('/who', { headers: { authorization: 'ada', cookie } })).json.cookie).toBe(cookie);
    expect(runs).toBe(4);
  });

  it('shared: true says that all get the same', async () => {
    @Controller()
    class Shared {
      @Get()
      @CacheResponse({ ttl: '60s', shared: true })
      all(): object {
        return { run: ++runs };
      }
      @Get('but')
      @CacheResponse({ ttl: '60s', shared: true })
      but(@Headers('X-User') user: string, @Cookies('theme') _theme: string): object {
        return { user, run: ++runs };
      }
    }
    const { get } = await start(platform, [Shared]);
    const users: Record<string, string>[] = [{}, { authorization: 'ada' }, { cookie: 'a=b' }, { 'x-user': 'ada' }];
    for (const headers of users) await get('/', { headers });
    expect(runs).toBe(1);
    // What the handler takes by name counts nonetheless.
    for (const user of ['ada', 'bob', 'ada'])
      expect((await get('/but', { headers: { 'x-user': user } })).json.user).toBe(user);
    expect(runs).toBe(3);
  });

  it('what a handler takes by name counts by itself; what it takes without a name is not shared', async () => {
    @Controller()
    class Taking {
      @Get('header')
      @CacheResponse('60s')
      header(@Headers('X-Lang') language: string): object {
        return { seen: language ?? '', run: ++runs };
      }
      @Get('headers')
      @CacheResponse('60s')
      headers(@Headers() headers: Record<string, string>): object {
        return { seen: headers['x-lang'] ?? '', run: ++runs };
      }
      @Get('ip')
      @CacheResponse('60s')
      ip(@Ip() _ip: string): object {
        return { run: ++runs };
      }
      @Get('session')
      @CacheResponse('60s')
      session(@Session() _session: unknown): object {
        return { run: ++runs };
      }
    }
    const { get, warnings } = await start(platform, [Taking]);
    for (const path of ['/header', '/headers']) {
      for (const language of ['en', 'de', 'en', 'de'])
        expect((await get(path, { headers: { 'x-lang': language } })).json.seen).toBe(language);
    }
    expect(runs).toBe(2 + 4);
    for (const path of ['/ip', '/ip', '/session', '/session']) await get(path);
    expect(runs).toBe(2 + 4 + 4);
    expect(warnings()).toEqual([
      expect.stringContaining('Taking.headers has @CacheResponse(), but takes all headers'),
      expect.stringContaining("Taking.ip has @CacheResponse(), but takes the session or the client's address"),
      expect.stringContaining('Taking.session has'),
    ]);
  });

  it('H2: an allow-list reads a query as the handler does', async () => {
    @Controller()
    class Listed {
      @Get()
      @CacheResponse({ ttl: '60s', query: ['page', 'sort'] })
      page(@Query() query: Record<string, unknown>): object {
        return { page: query['page'], sort: query['sort'], run: ++runs };
      }
    }
    const { get } = await start(platform, [Listed], (app) => {
      if (platform === 'Express')
        (app as unknown as { set(name: string, value: string): void }).set('query parser', 'extended');
    });
    const junk = Array.from({ length: 1100 }, (_, index) => `j${index}=1`).join('&');
    const plain = ['?', '?page=1', '?page=2', '?page=2&sort=a', '?sort=a', '?page=1&page=2', '?page=%5B"1"%2C"2"%5D'];
    const awkward = [
      '?[page]=9',
      `?${junk}&page=2`,
      '?page[]=1&page[]=2',
      '?page[x]=1',
      '?PAGE=2',
      '?%70age=2',
      '?page=2&page[toString]=1',
    ];
    const seen = new Map<string, string>();
    for (const query of [...awkward, ...plain, ...awkward, ...plain]) {
      const { json } = await get(`/${query}`);
      const { run, ...body } = json;
      const text = JSON.stringify(body);
      expect(seen.get(query) ?? text).toBe(text);
      seen.set(query, text);
    }
    expect(seen.get('?')).toBe('{}');
    expect(seen.get('?page=2')).toBe('{"page":"2"}');
    expect(seen.get('?page=1&page=2')).toBe('{"page":["1","2"]}');
    expect(seen.get('?page=%5B"1"%2C"2"%5D')).toBe('{"page":"[\\"1\\",\\"2\\"]"}');

    // Of what is left out, what says who asks is no less a credential.
    runs = 0;
    for (const query of ['?page=7', '?page=7&utm_source=x', '?page=7&fbclid=1']) await get(`/${query}`);
    expect(runs).toBe(1);
    for (const query of ['?page=7&access_token=ada', '?page=7&api_key=b', '?page=7&user=c', '?sig=d&page=7'])
      await get(`/${query}`);
    expect(runs).toBe(5);
    const ones = ['accountId', 'customerid', 'userEmail', 'orgId', 'tenantName', 'memberId', 'JSESSIONID', 'userinfo'];
    for (const name of ones) await get(`/?page=7&${name}=ada`);
    expect(runs).toBe(5 + ones.length);
    for (const name of ['gclid', 'msclkid', 'utm_id', 'ref', '_', 'cacheBuster', 'origin', 'userless'])
      await get(`/?page=7&${name}=ada`);
    expect(runs).toBe(5 + ones.length);
  });

  it('versions of one URL, told by a header, by the media type, and by a handler that has several', async () => {
    @Controller('versioned')
    class Versioned {
      @Get()
      @Version('1')
      @CacheResponse('60s')
      first(): object {
        return { version: 1, run: ++runs };
      }
      @Get()
      @Version(['2', '3'])
      @CacheResponse('60s')
      second(): object {
        return { version: 2, run: ++runs };
      }
    }
    const ways = [
      [{ type: VersioningType.HEADER, header: 'x-version' }, (version: string) => ({ 'x-version': version })],
      [
        { type: VersioningType.MEDIA_TYPE, key: 'v=' },
        (version: string) => ({ accept: `application/json;v=${version}` }),
      ],
      [
        {
          type: VersioningType.CUSTOM,
          extractor: (request: { headers: Record<string, string> }) => request.headers['x-any'] ?? '1',
        },
        (version: string) => ({ 'x-any': version }),
      ],
    ] as const;
    for (const [options, headersOf] of ways) {
      const { get } = await start(platform, [Versioned], (app) =>
        app.setGlobalPrefix('api').enableVersioning(options as never),
      );
      for (const [asked, answered] of [
        ['1', 1],
        ['2', 2],
        ['1', 1],
        ['3', 2],
      ] as const)
        expect((await get('/api/versioned', { headers: headersOf(asked) })).json.version).toBe(answered);
    }
    const { get } = await start(platform, [Versioned], (app) => app.enableVersioning({ type: VersioningType.URI }));
    for (const [asked, answered] of [
      ['1', 1],
      ['2', 2],
      ['3', 2],
      ['1', 1],
    ] as const)
      expect((await get(`/v${asked}/versioned`)).json.version).toBe(answered);
  });

  it('hosts that a controller tells apart, and those that it does not', async () => {
    @Controller({ host: ':tenant.example.com', path: 'tenant' })
    class Tenants {
      @Get()
      @CacheResponse('60s')
      tenant(@HostParam('tenant') tenant: string): object {
        return { tenant, run: ++runs };
      }
    }
    const { get } = await start(platform, [Tenants]);
    for (const tenant of ['ada', 'bob', 'ada', 'bob'])
      expect((await get('/tenant', { headers: { host: `${tenant}.example.com` } })).json.tenant).toBe(tenant);
    expect(runs).toBe(2);
  });

  it('a whole controller, of which a handler is left out, another has options of its own, and others write', async () => {
    @Controller('all')
    @CacheResponse('60s')
    class All {
      @Get('a/:id')
      a(@Param('id') id: string): object {
        return { id, run: ++runs };
      }
      @Get('b')
      b(): object {
        return { run: ++runs };
      }
      @Get('never')
      @CacheResponse(false)
      never(): object {
        return { run: ++runs };
      }
      @Get('by/:id')
      @CacheResponse({ ttl: '60s', query: [] })
      by(@Param('id') id: string): object {
        return { id, run: ++runs };
      }
    }
    class Inherited extends All {}
    Controller('inherited')(Inherited);
    const { get } = await start(platform, [All, Inherited]);
    for (const base of ['/all', '/inherited']) {
      runs = 0;
      for (const path of ['/a/1', '/a/2', '/b', '/a/1', '/a/2', '/b']) await get(base + path);
      expect(runs).toBe(3);
      for (const path of ['/never', '/never']) await get(base + path);
      expect(runs).toBe(5);
      for (const path of ['/by/1', '/by/1?x=1', '/by/2']) await get(base + path);
      expect(runs).toBe(7);
    }
  });
});
