/** Criterion: the answers of two users never mix, whatever the headers. Each route has an uncached twin that says what is right. */
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, type ExecutionContext, Get, Header, Req, Res } from '@nestjs/common';
import { CacheResponse } from 'nestjs-stampede-cache';
import { moment } from '../apps.js';
import { PLATFORMS, type Platform, type RawRequest, raw } from './http-app.js';
import { type SeenRequest, type SomeResponse, start } from './mixing-app.js';

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
  // Like families of harmless ones, and none of them.
  ...['x-b3-user', 'sec-fetch-as', 'sec-ch-account', 'x-vercel-ip', 'cloudfront-viewer', 'cloudfront-is-admin-viewer'],
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

  it('H1: headers of which nobody knows: each is not shared, and a few warnings say so', async () => {
    const { get, warnings } = await start(platform, [echoOn(platform)]);
    for (const name of UNKNOWN_HEADERS) {
      for (const value of ['ada', 'bob', 'ada'])
        expect((await get('/cached/who', { headers: { [name]: value } })).json.headers).toHaveProperty(
          [name.toLowerCase()],
          value,
        );
    }
    expect(runs).toBe(3 * UNKNOWN_HEADERS.length);
    const said = warnings();
    expect(said.length).toBe(10);
    expect(said).toContainEqual(
      expect.stringContaining('its requests have the header x-sheep, of which nobody knows whether it says who asks'),
    );
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
        expect((await get(path, { headers: { 'x-lang': language } })).json.headers).toHaveProperty('x-lang', language);
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
