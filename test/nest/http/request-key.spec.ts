import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { HttpRequest } from '../../../lib/nest/http/exchange.js';
import { type Identity, saysWhoAsks, unnamedIdentity } from '../../../lib/nest/http/identity.js';
import { requestKey } from '../../../lib/nest/http/request-key.js';

const requestOf = (url: string, others: Partial<HttpRequest> = {}): HttpRequest => ({
  method: 'GET',
  host: 'shop.example',
  protocol: 'http',
  headers: {},
  url,
  ...others,
});

const keyOf = (request: HttpRequest, vary: readonly string[] = [], own?: string | (string | null)[]) =>
  requestKey(request, { handler: 'Shop.find', query: undefined, vary: new Set(vary), own });

const parameter = fc.tuple(
  fc.constantFrom('a', 'b', '[a]', 'a[]', 'a[0]', 'a.b', '%61', 'c', ''),
  fc.constantFrom('', '1', '2', '%26'),
);
const textOf = (parameters: readonly (readonly [string, string])[]) =>
  parameters.map(([name, value]) => `${name}=${value}`).join('&');

/** As far as a parser may tell: the values of each name, in their order. */
function meaningOf(parameters: readonly (readonly [string, string])[]): string {
  const values = new Map<string, string[]>();
  for (const [name, value] of parameters) {
    const [root = ''] = decodeURIComponent(name)
      .replace(/^\[/, '')
      .split(/[[\].]/);
    values.set(root, [...(values.get(root) ?? []), `${name}=${value}`]);
  }
  return JSON.stringify([...values].sort(([left], [right]) => (left < right ? -1 : 1)));
}

describe('the key of a request', () => {
  it('reads as what it is', () => {
    expect(keyOf(requestOf('/a/b?y=2&x=1'))).toBe('GET:shop.example:Shop.find:/a/b:x=1&y=2');
    expect(keyOf(requestOf('/', { headers: { 'accept-language': 'de' } }), ['accept-language'], ['ada', null])).toBe(
      'GET:shop.example:Shop.find:/:~:accept-language%3Ade:~:ada%3A%7Enull',
    );
  });

  it('H2: is the same for two queries exactly when they say the same', () => {
    fc.assert(
      fc.property(fc.array(parameter, { maxLength: 5 }), fc.array(parameter, { maxLength: 5 }), (one, two) => {
        const same = keyOf(requestOf(`/?${textOf(one)}`)) === keyOf(requestOf(`/?${textOf(two)}`));
        expect(same).toBe(meaningOf(one) === meaningOf(two));
      }),
      { numRuns: 3_000 },
    );
  });

  it('H2: does not depend on the order of parameters', () => {
    const distinct = fc.uniqueArray(
      fc.tuple(fc.stringMatching(/^[a-z]{1,3}$/), fc.stringMatching(/^[a-z0-9%+]{0,4}$/)),
      {
        selector: ([name]) => name,
      },
    );
    const shuffled = distinct.chain((parameters) =>
      fc.tuple(fc.constant(parameters), fc.shuffledSubarray(parameters, { minLength: parameters.length })),
    );
    fc.assert(
      fc.property(shuffled, ([one, two]) => {
        expect(keyOf(requestOf(`/?${textOf(one)}`))).toBe(keyOf(requestOf(`/?${textOf(two)}`)));
      }),
    );
  });

  it('is another when any of its parts is', () => {
    const text = fc.constantFrom('', 'a', 'b', ':', '~', '%3A', 'a:b', '~undefined', 'x-a:a', '@port:own');
    const request = fc.record({
      path: fc.constantFrom('/', '/a', '/a:b', '/~'),
      language: fc.option(text, { nil: undefined }),
      other: fc.option(text, { nil: undefined }),
      forwarded: fc.option(
        text.filter((value) => value !== ''),
        { nil: undefined },
      ),
      host: fc.constantFrom('a', 'a:80', 'a:81', 'b'),
      own: fc.option(
        fc.oneof(fc.constantFrom('a', 'a:b', '~'), fc.array(fc.option(text), { minLength: 1, maxLength: 2 })),
        { nil: undefined },
      ),
    });
    const composed = ({
      path,
      language,
      other,
      forwarded,
      host,
      own,
    }: typeof request extends fc.Arbitrary<infer R> ? R : never) =>
      keyOf(
        requestOf(path, {
          host,
          socket: { localPort: 80 },
          headers: { 'x-a': language, 'x-b': other, 'x-forwarded-host': forwarded },
        }),
        ['x-a', 'x-b'],
        own,
      );
    // A key that is a text may be one that parts give, as everywhere: it is the user's.
    const meaning = ({ own, ...rest }: { readonly own?: unknown }) =>
      JSON.stringify([
        Object.entries(rest),
        typeof own === 'string'
          ? own
          : Array.isArray(own)
            ? own
                .map((part) => (part === null ? '~null' : part === '' ? '~' : part.replace(/[%:~]/g, encode)))
                .join(':')
            : null,
      ]);
    fc.assert(
      fc.property(request, request, (one, two) => {
        expect(composed(one) === composed(two)).toBe(meaning(one) === meaning(two));
      }),
      { numRuns: 3_000 },
    );
  });

  it('does not show what says who asks', () => {
    const key = (authorization: string) =>
      requestKey(requestOf('/', { headers: { authorization, 'accept-language': 'de' } }), {
        handler: 'Shop.find',
        query: undefined,
        vary: new Set(['authorization', 'accept-language']),
        identity: ['authorization'],
        own: undefined,
      });
    expect(key('Bearer s3cret')).toMatch(
      /^GET:shop\.example:Shop\.find:\/:~:accept-language%3Ade%3Aauthorization%3A[\w-]{43}$/,
    );
    expect(key('Bearer s3cret')).toBe(key('Bearer s3cret'));
    expect(key('Bearer s3cret')).not.toBe(key('Bearer other'));
    expect(key('')).not.toBe(key('Bearer other'));
  });

  it.each<[string, Record<string, string>, Record<string, string>]>([
    ['HTTP/2: a host, and another authority', { host: 'a', ':authority': 'a' }, { host: 'a', ':authority': 'evil' }],
    ['a host with a quote in it', { forwarded: 'host="a\\";b"' }, { forwarded: 'host="a\\";c"' }],
    ['a host with spaces around', { forwarded: 'for=1;host = a' }, { forwarded: 'for=1;host = evil' }],
    ['a host by another name', { forwarded: 'for=1;server=a' }, { forwarded: 'for=1;server=evil' }],
  ])('is another for another site: %s', (_what, one, two) => {
    expect(keyOf(requestOf('/', { headers: one }))).not.toBe(keyOf(requestOf('/', { headers: two })));
  });

  it.each<[string, Record<string, string>, Record<string, string>]>([
    ['the authority that is the host', {}, { ':authority': 'shop.example', ':scheme': 'http', ':path': '/' }],
    ['addresses', { forwarded: 'for=1.2.3.4;by=_a;host=a' }, { forwarded: 'For="[::1]:80";by=_b;host=a' }],
    ['more of them', { forwarded: 'for=1;proto=https' }, { forwarded: 'for=2, for=3;by=4;proto=https' }],
    ['nothing else', {}, { forwarded: 'for=1;by="_b", for=2' }],
  ])('is the same for the same site: %s', (_what, one, two) => {
    expect(keyOf(requestOf('/', { headers: one }))).toBe(keyOf(requestOf('/', { headers: two })));
  });

  it('of so many parameters that parsers leave some out, the order counts', () => {
    const many = Array.from({ length: 1_200 }, (_, index) => `p${index}=1`);
    expect(keyOf(requestOf(`/?${many.join('&')}`))).not.toBe(keyOf(requestOf(`/?${many.reverse().join('&')}`)));
  });
});

function encode(reserved: string): string {
  return { '%': '%25', ':': '%3A', '~': '%7E' }[reserved] ?? '';
}

describe('who asks', () => {
  it.each([
    'user-agent',
    'x-original-user-agent',
    'sec-fetch-user',
    'sec-ch-ua',
    'accept',
    'accept-language',
    'host',
    'referer',
    'origin',
    'if-none-match',
    'traceparent',
    'tracestate',
    'x-request-id',
    'x-amzn-trace-id',
    'x-forwarded-for',
    'cf-ray',
    'cf-visitor',
    'via',
    'te',
    'priority',
    'x-b3-traceid',
    'sentry-trace',
    'baggage',
    'cache-control',
    'pragma',
    'dnt',
    'upgrade-insecure-requests',
  ])('nobody is told by %s', (name) => {
    expect(saysWhoAsks(name)).toBe(false);
  });

  const nobody = { vary: new Set<string>(), query: undefined };

  it('a client certificate tells', () => {
    const socket = { getPeerCertificate: () => ({ subject: { CN: 'ada' } }) };
    for (const headers of [{}, { 'x-tenant': 't' }, { cookie: 'a=1', authorization: 'ada' }]) {
      const vary = new Set(Object.keys(headers));
      expect(unnamedIdentity(requestOf('/', { socket, headers }), { ...nobody, vary })).toEqual({
        is: 'client certificate',
      });
    }
    expect(unnamedIdentity(requestOf('/', { socket: { getPeerCertificate: () => ({}) } }), nobody)).toBeUndefined();
  });

  it.each<[Partial<HttpRequest>, Identity | undefined]>([
    [{ user: { id: 1 } }, { is: 'user' }],
    [{ user: 0 }, { is: 'user' }],
    [{ auth: { sub: 'ada' } }, { is: 'user' }],
    [{ session: {} }, { is: 'session' }],
    [{ user: null, auth: undefined, session: null }, undefined],
    [{ headers: { authorization: '' } }, { is: 'header', name: 'authorization' }],
  ])('so does what a guard leaves: %p', (others, who) => {
    expect(unnamedIdentity(requestOf('/', others), nobody)).toEqual(who);
  });

  it('a user whose credentials are part of the key is told apart by them', () => {
    const request = requestOf('/', { user: { id: 1 }, headers: { authorization: 'ada' } });
    expect(unnamedIdentity(request, { ...nobody, vary: new Set(['authorization']) })).toBeUndefined();
    expect(unnamedIdentity(request, { ...nobody, vary: new Set(['accept-language']) })).toEqual({
      is: 'header',
      name: 'authorization',
    });
  });

  it.each<[Record<string, string>, boolean, boolean]>([
    [{ cookie: 'a=1' }, true, true],
    [{ authorization: 'ada' }, true, false],
    [{ authorization: '' }, false, false],
    [{ 'x-tenant': 't' }, false, false],
    [{ 'x-tenant': 't', authorization: 'ada' }, true, false],
  ])('of headers in the key, %p tells apart a user: %p, a session: %p', (headers, user, session) => {
    const vary = new Set(Object.keys(headers));
    const unnamed = (others: Partial<HttpRequest>) =>
      unnamedIdentity(requestOf('/', { headers, ...others }), { ...nobody, vary }) === undefined;
    expect([unnamed({ user: 'ada' }), unnamed({ auth: 'ada' }), unnamed({ session: {} })]).toEqual([
      user,
      user,
      session,
    ]);
  });

  it('versions of an API, in whatever header, are told apart by the key', () => {
    for (const name of ['x-api-version', 'api-version', 'x-version', 'version', 'accept-version']) {
      expect(saysWhoAsks(name)).toBe(false);
      const [one, two] = ['1', '2'].map((value) => keyOf(requestOf('/', { headers: { [name]: value } })));
      expect(one).not.toBe(two);
    }
  });
});
