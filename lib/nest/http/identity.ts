import { type HttpRequest, leftOn } from './exchange.js';
import { isAlwaysInKey, parameterNames } from './request-key.js';

/**
 * Request headers of which it is known that they say nothing of who asks: those of HTTP and of browsers, of tracing, and
 * what proxies tell of the connection. Any other may, by a name that nobody can foresee.
 */
const HARMLESS = new Set(
  `
  a-im accept accept-charset accept-datetime accept-encoding accept-language accept-ranges age
  access-control-request-headers access-control-request-method access-control-request-private-network
  cache-control connection content-digest content-disposition content-encoding content-language content-length
  content-location content-md5 content-range content-type date dnt early-data expect http2-settings
  if-match if-modified-since if-none-match if-range if-unmodified-since keep-alive last-event-id max-forwards
  origin pragma prefer priority proxy-connection range referer service-worker service-worker-navigation-preload
  te trailer transfer-encoding upgrade upgrade-insecure-requests user-agent via want-content-digest warning
  alt-used available-dictionary device-memory downlink dpr ect rtt save-data viewport-width width
  purpose x-moz x-purpose x-requested-with x-do-not-track x-original-user-agent x-device-user-agent

  b3 baggage elastic-apm-traceparent grpc-trace-bin newrelic sentry-trace traceparent tracestate uber-trace-id
  correlation-id request-id trace-id x-cloud-trace-context x-correlation-id x-correlationid x-request-id x-requestid
  x-trace-id x-transaction-id x-amzn-trace-id x-amz-cf-id x-ot-span-context x-client-trace-id
  x-request-start x-queue-start x-timer connect-time total-route-time

  client-ip true-client-ip x-client-ip x-cluster-client-ip x-real-ip x-real-port x-original-forwarded-for x-forwarded
  x-forwarded-for x-forwarded-by x-forwarded-method x-forwarded-tls-version x-scheme x-nginx-proxy x-varnish
  cdn-loop cf-connecting-ip cf-connecting-ipv6 cf-connecting-o2o cf-pseudo-ipv4 cf-ew-via cf-ipcountry cf-ipcity
  cf-ipcontinent cf-iplatitude cf-iplongitude cf-region cf-region-code cf-metro-code cf-postal-code cf-timezone
  cf-ray cf-visitor cf-worker cf-warp-tag-id
  fastly-client-ip fastly-ff fastly-ssl fly-client-ip fly-region fly-request-id do-connecting-ip
  akamai-origin-hop x-akamai-edgescape x-azure-clientip x-azure-fdid x-azure-ref x-azure-requestchain x-azure-socketip
  x-fd-healthprobe x-arr-log-id x-arr-ssl x-site-deployment-id was-default-hostname disguised-host x-appservice-proto
  x-waws-unencoded-url x-appengine-city x-appengine-citylatlong x-appengine-country x-appengine-region
  x-appengine-https x-appengine-request-log-id x-appengine-timeout-ms x-appengine-user-ip
  x-vercel-id x-vercel-forwarded-for x-vercel-proxied-for x-vercel-deployment-url x-nf-request-id
  x-nf-client-connection-ip x-railway-edge x-railway-request-id rndr-id x-kong-request-id
  x-envoy-external-address x-envoy-internal x-envoy-expected-rq-timeout-ms x-envoy-attempt-count x-envoy-original-path
  x-envoy-decorator-operation
  `
    .trim()
    .split(/\s+/),
);

/** Families of such, and HTTP/2's `:path` and the like. */
const HARMLESS_FAMILIES = new RegExp(
  `^(?::|${[
    'sec-fetch-(?:site|mode|user|dest|storage-access)$',
    'sec-ch-(?:ua(?:-[a-z0-9-]+)?|prefers-[a-z-]+|viewport-(?:width|height)|width|dpr|device-memory|rtt|downlink|ect|save-data)$',
    'sec-(?:gpc|purpose|cpc|speculation-tags)$',
    'x-b3-(?:traceid|spanid|parentspanid|sampled|flags)$',
    'x-datadog-(?:origin|parent-id|sampling-priority|tags|trace-id)$',
    'x-vercel-ip-[a-z-]+$',
    'cloudfront-(?:forwarded-proto|is-(?:mobile|tablet|desktop|smarttv|android|ios)-viewer|viewer-[a-z0-9-]+)$',
  ].join('|')})`,
);

/** Whether a header says who asks, or may: judged by its name, in lower case. */
export function saysWhoAsks(name: string): boolean {
  return !HARMLESS.has(name) && !HARMLESS_FAMILIES.test(name) && !isAlwaysInKey(name);
}

/** The request's headers that say who asks, or may, in lower case. */
export function identityHeaders({ headers }: HttpRequest): string[] {
  return Object.keys(headers).filter((name) => headers[name] !== undefined && saysWhoAsks(name));
}

const PERSON =
  'users?|usr|uid|login|account|customer|consumer|client|device|profile|visitor|guest|member|person|employee|subject|sub|' +
  'actor|principal|owner|tenants?|org|organi[sz]ation|company|workspace|team|roles?|groups?|permissions?|scopes?|claims?|' +
  'admin|session|sess|auth|viewer';
/** What a person is spoken of by, and whatever is a secret of theirs. */
const WORDS =
  `(?:${PERSON})(?:id|uuid|name|e?mail|role|info|code|key|group)?s?|` +
  'authn|authz|authorization|authenticat(?:ed|ion)|cookie2?|jwt|bearer|sid|[a-z]*sess(?:ion)?id|credentials?|secret|password|' +
  'passwd|passcode|pass|pwd|pin|otp|totp|sso|signature|sig|hmac|dpop|wsse|saml|oidc|oauth2?|assertion|identity|ticket|' +
  '[a-z]*token|[a-z]*key|cert(?:ificate)?|clientcert|dn|webauth|[a-z]*userid|[a-z]*username|e?mail|msisdn|phone|cart|sudo|' +
  'spiffe|impersonat(?:e|ed|ion|or)|on-behalf-of';
const IDENTITY = new RegExp(`(?:^|[-_.])(?:${WORDS})(?:$|[-_.])`, 'i');

/** Whether a name has a word in it by which a header, or a parameter of the query, usually says who asks. */
export function hasIdentityWord(name: string): boolean {
  return IDENTITY.test(name.replace(/([a-z0-9])([A-Z])/g, '$1-$2'));
}

export interface Separating {
  /** Headers that are part of the key, in lower case. */
  readonly vary: ReadonlySet<string>;
  /** The query's parameters that are; all if left out. */
  readonly query: readonly string[] | undefined;
}

export type Identity =
  | { readonly is: 'header' | 'parameter'; readonly name: string }
  | { readonly is: 'user' | 'session' | 'client certificate' };

/**
 * What of a request says who asks and isn't part of the key: its answer may be for nobody else. `undefined` when there is
 * nothing. A header in the key stands for itself; only a credential stands for what is found out by it as well.
 */
export function unnamedIdentity(request: HttpRequest, { vary, query }: Separating): Identity | undefined {
  const header = identityHeaders(request).find((name) => !vary.has(name));
  if (header !== undefined) return { is: 'header', name: header };
  const parameter = query && parameterNames(request).find((name) => hasIdentityWord(name) && !query.includes(name));
  if (parameter !== undefined) return { is: 'parameter', name: parameter };
  if (hasClientCertificate(request)) return { is: 'client certificate' };
  // All its headers that say who asks are in the key.
  const [byCookie, byAuthorization] = [has(request, 'cookie'), has(request, 'authorization')];
  const users = [...leftOn(request, 'user'), ...leftOn(request, 'auth')];
  if (users.length > 0 && !byCookie && !byAuthorization) return { is: 'user' };
  // One that has just begun has no cookie yet, and is as much somebody's.
  const isTold = (session: unknown) => byCookie && isInCookie(session, String(request.headers['cookie']));
  return leftOn(request, 'session').every(isTold) ? undefined : { is: 'session' };
}

/** Whether a session may be one that a cookie has named, and isn't new to a client who had other cookies. */
function isInCookie(session: unknown, cookie: string): boolean {
  const { id, sessionId = id, isNew } = Object(session) as { id?: unknown; sessionId?: unknown; isNew?: unknown };
  return isNew !== true && (typeof sessionId !== 'string' || cookie.includes(sessionId));
}

function has({ headers }: HttpRequest, name: string): boolean {
  return headers[name] !== undefined && headers[name] !== '';
}

function hasClientCertificate({ socket }: HttpRequest): boolean {
  const certificate = typeof socket?.getPeerCertificate === 'function' ? socket.getPeerCertificate() : undefined;
  return certificate !== null && certificate !== undefined && Object.keys(certificate).length > 0;
}
