/** Criterion: the answers of two users never mix, whatever the headers. Each route has an uncached twin that says what is right. */
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  type CallHandler,
  ClassSerializerInterceptor,
  Controller,
  Cookies,
  type ExecutionContext,
  ForbiddenException,
  Get,
  Header,
  Headers,
  HostParam,
  HttpException,
  type INestApplication,
  Ip,
  type NestInterceptor,
  Param,
  Query,
  Req,
  Res,
  Session,
  type Type,
  UseInterceptors,
  Version,
  VersioningType,
} from '@nestjs/common';
import { APP_INTERCEPTOR, Reflector } from '@nestjs/core';
import { Exclude, Expose } from 'class-transformer';
import { CacheAsideInterceptor, CacheResponse, StampedeCacheModule } from 'nestjs-stampede-cache';
import { map } from 'rxjs';
import { keptLogger, moment } from '../apps.js';
import { crowd, listenOn, PLATFORMS, type Platform, type RawRequest, raw } from './http-app.js';

interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, unknown>;
  readonly query: unknown;
  readonly body?: unknown;
  readonly user?: unknown;
  readonly session?: { visits?: number };
}

interface SomeResponse {
  status(code: number): unknown;
  header(name: string, value: string): unknown;
}

let runs = 0;
beforeEach(() => {
  runs = 0;
});

/** All that a handler may see of a request: in an answer that was somebody else's, it is somebody else's. */
function echo(request: SeenRequest): object {
  runs += 1;
  const { method, url, headers, query, body, user } = request;
  const { connection, 'user-agent': _, ...rest } = headers;
  return {
    method,
    url: url.replace(/^\/(?:cached|plain)/, ''),
    headers: rest,
    query: { ...(query as object) },
    body,
    user,
  };
}

function echoOn(platform: Platform): new () => object {
  const rest = platform === 'Express' ? '*rest' : '*';
  @Controller()
  class Echo {
    @Get(['cached', `cached/${rest}`])
    @CacheResponse('60s')
    async cached(@Req() request: SeenRequest): Promise<object> {
      const answer = echo(request);
      return request.url.endsWith('?slow') ? moment(answer) : answer;
    }
    @Get(['plain', `plain/${rest}`])
    plain(@Req() request: SeenRequest): object {
      return echo(request);
    }
  }
  return Echo;
}

async function start(
  platform: Platform,
  controllers: (new (...args: never[]) => object)[],
  configure?: (app: INestApplication) => unknown,
) {
  const logger = keptLogger();
  const { app, port } = await listenOn(
    platform,
    { imports: [StampedeCacheModule.forTest({ logger })], controllers },
    configure,
  );
  const get = (path: string, request?: RawRequest) => raw(port, path, request);
  const warnings = () => logger.lines.filter((line) => line.startsWith('warn'));
  return { app, port, get, warnings };
}

/** What says who asks, in many a dialect. */
const IDENTITY_HEADERS = [
  ...['authorization', 'Authorization', 'AUTHORIZATION', 'proxy-authorization', 'authentication', 'x-authorization'],
  ...['cookie', 'Cookie', 'cookie2', 'x-cookie', 'x-session', 'x-session-id', 'session-id', 'sid', 'x-sid'],
  ...[
    'x-api-key',
    'api-key',
    'apikey',
    'x-apikey',
    'x-goog-api-key',
    'ocp-apim-subscription-key',
    'x-functions-key',
    'x-rapidapi-key',
  ],
  ...[
    'x-auth-token',
    'x-access-token',
    'x-id-token',
    'x-refresh-token',
    'token',
    'x-token',
    'private-token',
    'x-vault-token',
    'x-csrf-token',
    'x-xsrf-token',
  ],
  ...[
    'x-amz-security-token',
    'x-amzn-oidc-data',
    'x-amzn-oidc-identity',
    'x-goog-authenticated-user-email',
    'x-goog-iap-jwt-assertion',
    'cf-access-jwt-assertion',
  ],
  ...[
    'x-ms-client-principal',
    'x-ms-client-principal-name',
    'x-ms-token-aad-id-token',
    'x-jwt',
    'x-jwt-assertion',
    'x-bearer',
    'dpop',
    'x-wsse',
    'x-saml-assertion',
  ],
  ...[
    'x-user',
    'x-user-id',
    'x-userid',
    'user-id',
    'x-username',
    'remote-user',
    'x-remote-user',
    'x-forwarded-user',
    'x-forwarded-email',
    'x-authenticated-userid',
    'x-auth-request-email',
    'x-webauth-user',
    'from',
    'x-email',
    'x-login',
    'x-uid',
  ],
  ...[
    'x-tenant',
    'x-tenant-id',
    'tenant',
    'x-org-id',
    'x-organization',
    'x-organisation-id',
    'x-company',
    'x-account-id',
    'x-customer-id',
    'x-workspace',
    'x-consumer-username',
    'x-credential-identifier',
  ],
  ...[
    'x-role',
    'x-roles',
    'x-hasura-role',
    'x-hasura-admin-secret',
    'x-group',
    'x-permissions',
    'x-scope',
    'x-impersonate',
    'x-impersonate-user',
    'x-on-behalf-of',
    'x-client-id',
    'x-device-id',
  ],
  ...[
    'x-client-cert',
    'x-forwarded-client-cert',
    'x-ssl-client-dn',
    'ssl-client-verify',
    'x-ssl-client-cert',
    'x-arr-clientcert',
    'signature',
    'x-signature',
    'x-hub-signature-256',
    'x-password',
    'x-otp',
    'x-secret',
  ],
];

/** What may say who asks, and what certainly doesn't, as far as anybody knows. */
const UNKNOWN_HEADERS = [
  ...[
    'x-sheep',
    'X-AccountId',
    'X-CustomerId',
    'X-UserEmail',
    'X-UserRole',
    'X-OrgId',
    'X-OrganizationId',
    'X-CompanyId',
  ],
  ...['X-WorkspaceId', 'X-MemberId', 'X-RoleId', 'X-GroupId', 'X-ProfileId', 'X-TenantName', 'X-ConsumerId'],
  ...['X-SubjectId', 'X-PrincipalId', 'X-ActorId', 'X-LoginId', 'X-AuthUser', 'X-Endpoint-API-UserInfo'],
  ...['X-Apigateway-Api-Userinfo', 'X-Userinfo', 'X-MSISDN', 'X-SSO', 'X-Admin', 'Sudo', 'X-Owner', 'X-Spiffe-Id'],
  ...['X-Pass', 'X-Pin', 'X-Passcode', 'X-JSessionId', 'x-phpsessid', 'x-person-id', 'x-employee', 'x-team', 'x-plan'],
  ...['x-merchant-id', 'x-partner-id', 'x-shop-id', 'x-realm', 'x-viewer', 'x-caller', 'x-acl', 'x-usr', 'x-ldap'],
  ...['x-debug', 'x-preview', 'x-locale', 'x-country', 'x-http-method-override', 'x-forwarded-groups', 'x-client'],
  ...['x-forwarded-access-token', 'x-vercel-protection-bypass', 'x-appengine-user-email', 'l5d-client-id', 'x-a', 'b'],
];

/** What handlers make links of, and attackers therefore set. */
const SITE_HEADERS: Record<string, [string, string]> = {
  host: ['shop.example', 'bank.example'],
  Host: ['shop.example', 'shop.example:8443'],
  'x-forwarded-host': ['shop.example', 'evil.example'],
  'x-forwarded-proto': ['https', 'http'],
  'x-forwarded-scheme': ['https', 'http'],
  'x-forwarded-port': ['443', '80'],
  'x-forwarded-prefix': ['/a', '/b'],
  'x-forwarded-server': ['a', 'b'],
  'x-forwarded-ssl': ['on', 'off'],
  'x-original-url': ['/a', '/b'],
  'x-rewrite-url': ['/a', '/b'],
  'x-original-host': ['a', 'b'],
  'x-host': ['a', 'b'],
  forwarded: ['for=1.2.3.4;host=shop.example', 'for=1.2.3.4;host=evil.example'],
};

/** Paths and queries that look alike. */
const URLS = [
  ...[
    '',
    '/',
    '//',
    '/a',
    '/a/',
    '/A',
    '/a%2Fb',
    '/a%2fb',
    '/a/b',
    '/%61',
    '/a/../b',
    '/b',
    '/a/./b',
    '/a%00',
    '/a;x=1',
    '/a:b',
    '/a~b',
    '/a%3Ab',
    '/ä',
  ].map(encodeSafely),
  ...[
    '/a?b',
    '/a?b=',
    '/a?b=1',
    '/a?b=1&c=2',
    '/a?b=2&c=1',
    '/a?b=1&b=2',
    '/a?b=2&b=1',
    '/a?b=1%262',
    '/a?b=1&2',
    '/a?b=1%26c=2',
    '/a?b=%2B',
    '/a?b=+',
    '/a?b=%20',
  ],
  ...[
    '/a?b[]=1&b[]=2',
    '/a?b[]=2&b[]=1',
    '/a?b[0]=1&b[1]=2',
    '/a?b[1]=1&b[0]=2',
    '/a?b[c]=1',
    '/a?[b]=1',
    '/a?[b]=1&b=2',
    '/a?b=2&[b]=1',
    '/a?b.c=1',
    '/a?B=1',
    '/a?%62=1&b=2',
    '/a?b=2&%62=1',
    '/a?b=%FE',
    '/a?b=%FF',
  ],
  ...[
    '/a?__proto__[x]=1',
    '/a?constructor=1',
    '/a?toString=1',
    '/a?b=%',
    '/a??b=1',
    '/a?b=1?c=2',
    '/a?b=~undefined',
    '/a?b=null',
    '/a?b=1;c=2',
    '/a?c=2;b=1',
  ],
];

function encodeSafely(path: string): string {
  return path.replace(/[^\x20-\x7e]/g, (text) => encodeURIComponent(text));
}

const GET: RawRequest = {};

describe.each(PLATFORMS)('on %s', (platform) => {
  /** Sends each request to the cached route, all of them twice, and expects what its uncached twin answers. */
  async function expectNoMix(requests: readonly (readonly [path: string, request: RawRequest])[]) {
    const { get } = await start(platform, [echoOn(platform)]);
    const right: unknown[] = [];
    for (const [path, request] of requests) right.push((await get(`/plain${path}`, request)).body);
    for (let round = 0; round < 2; round += 1) {
      const bodies: string[] = [];
      for (const [path, request] of requests)
        bodies.push((await get(`/cached${path}`, request)).body.replaceAll('/cached', '/plain'));
      expect(bodies).toEqual(right.map((body) => String(body).replaceAll('/cached', '/plain')));
    }
    // At once as well, so that they would join each other's load.
    const together = await Promise.all(requests.map(([path, request]) => get(`/cached${path}?slow`, request)));
    const alone = await Promise.all(requests.map(([path, request]) => get(`/plain${path}?slow`, request)));
    expect(together.map(({ body }) => body)).toEqual(alone.map(({ body }) => body));
  }

  it('H1: what says who asks, in any header', async () => {
    const requests = IDENTITY_HEADERS.flatMap((name) =>
      ['ada', 'bob', ''].map((user): [string, RawRequest] => ['/who', { headers: { [name]: user } }]),
    );
    await expectNoMix([['/who', GET], ...requests, ['/who', GET]]);
  }, 120_000);

  it('H1: several credentials, doubled ones, none', async () => {
    await expectNoMix([
      ['/who', GET],
      ['/who', { headers: { authorization: 'Bearer ada', cookie: 'theme=dark' } }],
      ['/who', { headers: { authorization: 'Bearer bob', cookie: 'theme=dark' } }],
      ['/who', { headers: ['Cookie', 'a=1', 'Cookie', 'b=2', 'Host', 'x'] }],
      ['/who', { headers: ['Cookie', 'a=1; b=2', 'Host', 'x'] }],
      ['/who', { headers: ['X-Api-Key', 'ada', 'X-Api-Key', 'bob', 'Host', 'x'] }],
      ['/who', { headers: ['Authorization', 'ada', 'Authorization', 'bob', 'Host', 'x'] }],
    ]);
  });

  it('the site that is asked for, in any header', async () => {
    await expectNoMix(
      Object.entries(SITE_HEADERS).flatMap(([name, values]) =>
        values.map((value): [string, RawRequest] => ['/links', { headers: { [name]: value } }]),
      ),
    );
  });

  it('paths and queries that look alike', async () => {
    await expectNoMix(URLS.map((path) => [path, GET]));
  }, 60_000);

  it('requests for a part, and with a body', async () => {
    await expectNoMix([
      ['/part', GET],
      ['/part', { headers: { range: 'bytes=0-1' } }],
      ['/part', { headers: { range: 'bytes=2-3', 'if-range': '"x"' } }],
      ['/part', { headers: { 'content-type': 'application/json', 'content-length': '14' }, body: '{"user":"ada"}' }],
      [
        '/part',
        { headers: { 'content-type': 'application/json', 'transfer-encoding': 'chunked' }, body: '{"user":"bob"}' },
      ],
    ]);
  });

  it('but what is the same for all is shared by all', async () => {
    const { get } = await start(platform, [echoOn(platform)]);
    const agents = ['Mozilla/5.0', 'curl/8'];
    const harmless = [
      'sec-fetch-user',
      'sec-ch-ua',
      'traceparent',
      'x-request-id',
      'x-amzn-trace-id',
      'cf-visitor',
      'x-real-ip',
      'referer',
      'dnt',
    ];
    for (const agent of agents) {
      for (const name of harmless) await get('/cached/same', { headers: { 'user-agent': agent, [name]: `${agent}1` } });
    }
    expect(runs).toBe(1);
  });

  it('H1: a user that a guard has found, by whatever', async () => {
    @Controller()
    class Users {
      @Get('default')
      @CacheResponse('60s')
      default(@Req() request: SeenRequest): Promise<object> {
        return moment(echo(request));
      }
      @Get('vary')
      @CacheResponse({ ttl: '60s', vary: ['X-Employee'] })
      vary(@Req() request: SeenRequest): Promise<object> {
        return moment(echo(request));
      }
      @Get('key')
      @CacheResponse({ ttl: '60s', key: (context) => [context.switchToHttp().getRequest().user ?? null] })
      key(@Req() request: SeenRequest): Promise<object> {
        return moment(echo(request));
      }
      @Get('no-key')
      @CacheResponse({ ttl: '60s', key: () => undefined })
      noKey(@Req() request: SeenRequest): Promise<object> {
        return moment(echo(request));
      }
    }
    const { get } = await start(platform, [Users], (app) =>
      app.useGlobalGuards({
        canActivate(context: ExecutionContext) {
          const request = context.switchToHttp().getRequest();
          request.user = request.headers['x-employee'];
          return true;
        },
      }),
    );
    const ask = async (path: string, user?: string) =>
      (await get(path, { headers: user === undefined ? {} : { 'x-employee': user } })).json.user;
    for (const path of ['/default', '/vary', '/key', '/no-key']) {
      const users = ['ada', 'bob', undefined, 'ada', undefined, 'bob'];
      for (const user of users) expect(await ask(path, user)).toBe(user);
      expect(await Promise.all(users.map((user) => ask(path, user)))).toEqual(users);
    }
    // Of default and vary only the request without a user, of key each user once, of no-key none.
    expect(runs).toBe(4 * 2 + 1 + (4 * 2 + 1) + 3 + 12);
  });

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

  it('H1: headers of which nobody knows: each is not shared, and a few warnings say so', async () => {
    const { get, warnings } = await start(platform, [echoOn(platform)]);
    for (const name of UNKNOWN_HEADERS) {
      for (const value of ['ada', 'bob', 'ada'])
        expect((await get('/cached/who', { headers: { [name]: value } })).json.headers[name.toLowerCase()]).toBe(value);
    }
    expect(runs).toBe(3 * UNKNOWN_HEADERS.length);
    const said = warnings();
    expect(said.length).toBe(10);
    expect(said).toContainEqual(
      expect.stringContaining('its requests have the header x-sheep, of which nobody knows whether it says who asks'),
    );
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

  it('a response that says what it varies by is believed', async () => {
    @Controller()
    class Telling {
      @Get('decorated')
      @Header('Vary', 'X-Lang, Origin')
      @CacheResponse('60s')
      decorated(@Req() { headers }: SeenRequest): object {
        return { seen: headers['x-lang'], origin: headers['origin'], run: ++runs };
      }
      @Get('handler')
      @CacheResponse('60s')
      async handler(
        @Req() { headers }: SeenRequest,
        @Res({ passthrough: true }) response: SomeResponse,
      ): Promise<object> {
        response.header('vary', 'X-Lang');
        return moment({ seen: headers['x-lang'], run: ++runs });
      }
      @Get('named')
      @CacheResponse({ ttl: '60s', vary: ['x-lang'] })
      async named(
        @Req() { headers }: SeenRequest,
        @Res({ passthrough: true }) response: SomeResponse,
      ): Promise<object> {
        response.header('vary', 'X-Lang');
        return moment({ seen: headers['x-lang'], run: ++runs });
      }
      @Get('anything')
      @Header('Vary', '*')
      @CacheResponse('60s')
      anything(@Req() { headers }: SeenRequest): object {
        return { seen: headers['x-lang'], run: ++runs };
      }
    }
    const { get, warnings } = await start(platform, [Telling]);
    const ask = async (path: string, language: string) =>
      (await get(path, { headers: { 'x-lang': language } })).json.seen;
    const languages = ['en', 'de', 'en', 'de'];
    for (const path of ['/decorated', '/handler', '/named', '/anything']) {
      expect(await Promise.all(languages.map((language) => ask(path, language)))).toEqual(languages);
      for (const language of languages) expect(await ask(path, language)).toBe(language);
    }
    expect(runs).toBe(2 + 8 + 2 + 8);
    // Of middleware an Origin is only about CORS; of the handler it is about its answer.
    for (const origin of ['https://a.example', 'https://b.example'])
      expect((await get('/decorated', { headers: { origin } })).json.origin).toBe(origin);
    await get('/handler');
    expect(warnings()).toEqual([
      expect.stringContaining('Telling.handler has @CacheResponse(), but its requests have the header x-lang'),
      expect.stringContaining("answers with Vary: x-lang. Name what it varies by: vary: ['x-lang']."),
    ]);
  });

  it('so is middleware, and what that says of caching', async () => {
    const { get } = await start(platform, [echoOn(platform)], (app) =>
      app.use((request: SeenRequest, response: { setHeader(name: string, value: string): void }, next: () => void) => {
        if (request.url.includes('translated')) response.setHeader('Vary', 'X-Lang');
        if (request.url.includes('secret')) response.setHeader('Cache-Control', 'no-store');
        next();
      }),
    );
    for (const path of ['/cached/translated', '/cached/secret']) {
      for (const language of ['en', 'de', 'en'])
        expect((await get(path, { headers: { 'x-lang': language } })).json.headers['x-lang']).toBe(language);
    }
    expect(runs).toBe(2 + 3);
  });

  it('CORS: each origin gets the headers that are for it', async () => {
    const { get } = await start(platform, [echoOn(platform)], (app) =>
      app.enableCors({ origin: [/\.example$/], credentials: true }),
    );
    for (const origin of ['https://a.example', 'https://b.example', 'https://evil.test', 'https://a.example']) {
      const { headers } = await get('/cached/cors', { headers: { origin } });
      expect(headers['access-control-allow-origin']).toBe(origin.endsWith('.example') ? origin : undefined);
      expect(headers['vary']).toContain('Origin');
    }
    expect(runs).toBe(1);
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

  it('one client is not refused for another', async () => {
    @Controller()
    class Refusing {
      @Get('forbidden')
      @CacheResponse('60s')
      async forbidden(@Req() { headers }: SeenRequest): Promise<object> {
        runs += 1;
        await moment(undefined);
        if (headers['x-real-ip'] === 'bad') throw new ForbiddenException('not you');
        return { fine: true };
      }
      @Get('limited')
      @CacheResponse('60s')
      async limited(@Req() { headers }: SeenRequest): Promise<object> {
        runs += 1;
        await moment(undefined);
        if (headers['x-real-ip'] === 'bad') throw new HttpException('too many', 429);
        return { fine: true };
      }
      @Get('conditional')
      @CacheResponse('60s')
      async conditional(@Req() { headers }: SeenRequest, @Res({ passthrough: true }) response: SomeResponse) {
        await moment(undefined);
        if (headers['x-real-ip'] !== 'bad') return { fine: true };
        response.status(304);
        return undefined;
      }
    }
    const { get } = await start(platform, [Refusing]);
    for (const path of ['/forbidden', '/limited', '/conditional']) {
      const good = await crowd(6, async (index) => {
        const headers: Record<string, string> = index % 2 === 0 ? { 'x-real-ip': 'bad' } : {};
        const { status } = await get(path, { headers });
        return index % 2 === 0 ? 200 : status;
      });
      expect(good).toEqual(Array(6).fill(200));
    }
  });

  it('a session that changes, and a cookie that is written at the last moment', async () => {
    @Controller()
    class Visits {
      @Get('counts')
      @CacheResponse('60s')
      counts(@Req() request: { session: { visits?: number } }): object {
        runs += 1;
        request.session.visits = (request.session.visits ?? 0) + 1;
        return { run: runs };
      }
      @Get('reads')
      @CacheResponse('60s')
      reads(): object {
        return { run: ++runs };
      }
      @Get('for-all')
      @CacheResponse({ ttl: '60s', shared: true })
      forAll(): object {
        return { run: ++runs };
      }
      @Get('by-cookie')
      @CacheResponse({ ttl: '60s', vary: ['cookie', 'authorization'] })
      byCookie(): object {
        return { run: ++runs };
      }
    }
    const { get, warnings } = await start(platform, [Visits], (app) => {
      const begin = (request: { session?: object }, _response: unknown, next: () => void) => {
        request.session = {};
        next();
      };
      if (platform === 'Express') app.use(begin);
      else app.getHttpAdapter().getInstance().addHook('onRequest', begin);
    });
    for (const run of [1, 2]) expect((await get('/counts')).json.run).toBe(run);
    // The handler may answer with the session's id, also with that of one that has just begun.
    const answers = [await get('/reads'), await get('/reads')];
    expect(runs).toBe(4);
    for (const { headers } of answers)
      expect([headers['cache-status'], headers['cache-control']]).toEqual([
        'stampede; fwd=bypass; detail="session"',
        undefined,
      ]);
    for (let visit = 0; visit < 2; visit += 1) expect((await get('/for-all')).json.run).toBe(5);
    for (const cookie of ['a=1', 'a=2', 'a=1', 'a=2']) await get('/by-cookie', { headers: { cookie } });
    for (let visit = 0; visit < 2; visit += 1) await get('/by-cookie', { headers: { authorization: 'ada' } });
    expect(runs).toBe(5 + 2 + 2);
    expect(warnings()).toEqual(
      ['counts', 'reads', 'byCookie'].map((method) =>
        expect.stringContaining(`Visits.${method} has @CacheResponse(), but its requests have a session`),
      ),
    );
  });

  it('a cookie that is set before: neither it nor what is made of it is for others', async () => {
    @Controller()
    class Visitors {
      @Get('visitor')
      @CacheResponse('60s')
      visitor(@Req() request: { raw?: { visitor?: string }; visitor?: string }): object {
        return { visitor: (request.raw ?? request).visitor, run: ++runs };
      }
      @Get('for-all')
      @CacheResponse({ ttl: '60s', shared: true })
      forAll(): object {
        return { run: ++runs };
      }
    }
    let visitors = 0;
    const { get, warnings } = await start(platform, [Visitors], (app) =>
      app.use(
        (
          request: { visitor?: string; headers: Record<string, string> },
          response: { setHeader(name: string, value: string): void },
          next: () => void,
        ) => {
          visitors += 1;
          request.visitor = `v${visitors}`;
          response.setHeader('Set-Cookie', `visitor=v${visitors}`);
          next();
        },
      ),
    );
    const answers = [...(await crowd(4, () => get('/visitor'))), await get('/visitor')];
    for (const { headers, json } of answers) {
      expect(headers['set-cookie']).toEqual([`visitor=${json.visitor}`]);
      expect(headers['cache-status']).toBe('stampede; fwd=bypass; detail="set-cookie"');
    }
    expect(runs).toBe(5);
    for (let visit = 0; visit < 2; visit += 1) {
      const { headers, json } = await get('/for-all');
      expect([json.run, headers['cache-control']]).toEqual([6, 'private, max-age=60']);
    }
    expect(warnings()).toEqual([
      expect.stringContaining(
        'Visitors.visitor has @CacheResponse(), but is answered with a cookie that was set before',
      ),
    ]);
  });

  it('a cookie that a hook has put by for the end', async () => {
    if (platform === 'Express') return;
    @Controller()
    class Visitors {
      @Get()
      @CacheResponse('60s')
      visitor(): object {
        return { run: ++runs };
      }
    }
    const { get } = await start(platform, [Visitors], async (app) => {
      await (app as unknown as { register(plugin: unknown): Promise<void> }).register(import('@fastify/cookie'));
      app
        .getHttpAdapter()
        .getInstance()
        .addHook('onRequest', async (_: unknown, reply: { setCookie(name: string, value: string): void }) => {
          reply.setCookie('visitor', `v${runs}`);
        });
    });
    for (let visit = 0; visit < 2; visit += 1)
      expect((await get('/')).headers['cache-status']).toBe('stampede; fwd=bypass; detail="set-cookie"');
    expect(runs).toBe(2);
  });

  it("cookies by the platform's own means", async () => {
    @Controller()
    class Baker {
      @Get()
      @CacheResponse('60s')
      async bake(@Res({ passthrough: true }) response: { cookie(name: string, value: string): void }): Promise<object> {
        const run = ++runs;
        response.cookie('session', `s${run}`);
        return moment({ run });
      }
    }
    const { get } = await start(platform, [Baker], async (app) => {
      if (platform === 'Fastify')
        await (app as unknown as { register(plugin: unknown): Promise<void> }).register(import('@fastify/cookie'));
    });
    const answers = [...(await crowd(4, () => get('/'))), await get('/')];
    for (const { headers, json } of answers) expect(String(headers['set-cookie'])).toMatch(`session=s${json.run}`);
    expect(new Set(answers.map(({ json }) => json.run)).size).toBe(5);
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

  describe('a hit never shows more than a miss', () => {
    class User {
      name = 'Ada';
      @Exclude() password = 'secret';
      @Expose({ groups: ['admin'] }) salary = 7;
    }
    class RoleSerializer extends ClassSerializerInterceptor {
      override getContextOptions(context: ExecutionContext) {
        const role = context.switchToHttp().getRequest().headers['x-role'];
        return { ...super.getContextOptions(context), groups: role ? [role] : [] };
      }
    }
    @Controller()
    class Users {
      @Get('inside')
      @UseInterceptors(RoleSerializer)
      @CacheResponse('60s')
      inside(): User {
        runs += 1;
        return new User();
      }
      @Get('outside')
      @CacheResponse('60s')
      @UseInterceptors(RoleSerializer)
      outside(): User {
        runs += 1;
        return new User();
      }
      @Get('inside-by-role')
      @UseInterceptors(RoleSerializer)
      @CacheResponse({ ttl: '60s', vary: ['x-role'] })
      insideByRole(): User {
        runs += 1;
        return new User();
      }
      @Get('alone')
      @CacheResponse('60s')
      alone(): User {
        runs += 1;
        return new User();
      }
    }

    class Json extends User {
      toJSON(): object {
        return { ...this };
      }
    }
    class Year implements NestInterceptor {
      intercept(_context: ExecutionContext, next: CallHandler) {
        return next.handle().pipe(map(({ at }: { at: Date }) => ({ at: at.getFullYear() })));
      }
    }
    class Size implements NestInterceptor {
      intercept(_context: ExecutionContext, next: CallHandler) {
        return next.handle().pipe(map(({ size }: Map<string, number>) => ({ size })));
      }
    }
    const year = { at: 2001 };

    it.each<[string, () => unknown, Type<NestInterceptor>, unknown, string]>([
      ['an instance with a toJSON', () => new Json(), ClassSerializerInterceptor, { name: 'Ada' }, 'Json'],
      ['one in an object', () => ({ a: new Json() }), ClassSerializerInterceptor, { a: { name: 'Ada' } }, 'Json'],
      ['one in an array', () => [[new Json()]], ClassSerializerInterceptor, [[{ name: 'Ada' }]], 'Json'],
      ['a date', () => ({ at: new Date('2001-06-01') }), Year, year, 'Date'],
      ['a map', () => new Map([['a', 1]]), Size, { size: 1 }, 'Map'],
    ])('a serializer outside, and %s', async (_what, make, interceptor, expected, name) => {
      @Controller()
      class Outside {
        @Get()
        @CacheResponse('60s')
        @UseInterceptors(interceptor)
        make(): unknown {
          runs += 1;
          return make();
        }
      }
      const { get, warnings } = await start(platform, [Outside]);
      const answers = [...(await crowd(3, () => get('/'))), await get('/')];
      for (const { status, json } of answers) expect([status, json]).toEqual([200, expected]);
      expect(runs).toBe(4);
      expect(warnings()).toEqual([
        expect.stringContaining(
          `Outside.make has @CacheResponse(), but answers with an instance of ${name}, and only plain`,
        ),
      ]);
    });

    it.each([true, false])('a codec that knows dates: %s', async (knowsDates) => {
      const codec = {
        encode: (value: unknown) =>
          JSON.stringify(value, function (this: Record<string, unknown>, name, json) {
            const inner = this[name];
            return knowsDates && inner instanceof Date ? { $date: inner.getTime() } : json;
          }),
        decode: (text: string) =>
          JSON.parse(text, (_, inner) => (typeof inner?.$date === 'number' ? new Date(inner.$date) : inner)),
      };
      @Controller()
      class Dated {
        @Get('date')
        @CacheResponse({ ttl: '60s', codec })
        @UseInterceptors(Year)
        date(): object {
          return { at: new Date('2001-06-01'), run: ++runs };
        }
        @Get('user')
        @CacheResponse({ ttl: '60s', codec })
        @UseInterceptors(ClassSerializerInterceptor)
        user(): object {
          runs += 1;
          return { user: new Json() };
        }
      }
      const { get } = await start(platform, [Dated]);
      for (let request = 0; request < 3; request += 1) expect((await get('/date')).json).toEqual(year);
      expect(runs).toBe(knowsDates ? 1 : 3);
      for (let request = 0; request < 3; request += 1)
        expect((await get('/user')).json).toEqual({ user: { name: 'Ada' } });
      expect(runs).toBe((knowsDates ? 1 : 3) + 3);
    });

    const roles = ['admin', undefined, 'editor', 'admin', undefined, 'admin', 'editor'];
    const ask = async (get: Awaited<ReturnType<typeof start>>['get'], path: string, role: string | undefined) =>
      (await get(path, { headers: role === undefined ? {} : { 'x-role': role } })).json;
    const allowed = (role: string | undefined) => (role === 'admin' ? { name: 'Ada', salary: 7 } : { name: 'Ada' });

    it.each([
      ['/inside', 5 + 1],
      ['/outside', 7],
      ['/inside-by-role', 3],
    ])('with a serializer and groups per role: %s', async (path, expected) => {
      const { get } = await start(platform, [Users]);
      for (const role of roles) expect(await ask(get, path, role)).toEqual(allowed(role));
      expect(runs).toBe(expected);
      const together = await Promise.all(roles.map((role) => ask(get, path, role)));
      expect(together).toEqual(roles.map(allowed));
    });

    it.each(['serializer first', 'cache first'])('with a global serializer: %s', async (order) => {
      const { app, port } = await listenOn(platform, {
        imports: [StampedeCacheModule.forTest()],
        controllers: [Users],
        providers: (order === 'cache first' ? [CacheAsideInterceptor, RoleSerializer] : [RoleSerializer]).map(
          (useClass) => ({
            provide: APP_INTERCEPTOR,
            useClass,
          }),
        ),
      });
      expect(app.get(Reflector)).toBeDefined();
      for (const role of roles) {
        const { json } = await raw(port, '/alone', { headers: role === undefined ? {} : { 'x-role': role } });
        expect(json).toEqual(allowed(role));
      }
      expect(runs).toBe(order === 'cache first' ? 5 + 1 : 7);
    });
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

describe('an Express application in another', () => {
  it('is told apart by where it is mounted, and by what a middleware makes of its URL', async () => {
    const { app, port: direct } = await start('Express', [echoOn('Express')]);
    const express = createRequire(import.meta.url)('express');
    const parent = express();
    parent.use(
      '/rewritten',
      (request: { url: string; headers: Record<string, string> }, _: unknown, next: () => void) => {
        request.url = request.headers['x-lang'] === 'de' ? '/cached/de' : '/cached/en';
        next();
      },
    );
    parent.use(['/one', '/two', '/rewritten'], app.getHttpAdapter().getInstance());
    const server = createServer(parent).listen(0, '127.0.0.1');
    try {
      await new Promise((resolve) => server.once('listening', resolve));
      const { port } = server.address() as { port: number };
      for (const mount of ['/one', '/two', '/one']) await raw(port, `${mount}/cached/x?b=1&a=2`);
      await raw(port, '/one/cached/x?a=2&b=1');
      expect(runs).toBe(2);
      for (const language of ['en', 'de', 'en'])
        expect((await raw(port, '/rewritten', { headers: { 'x-lang': language } })).json.url).toBe(`/${language}`);
      expect((await raw(direct, '/cached/x')).status).toBe(200);
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });
});
