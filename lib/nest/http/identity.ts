import type { HttpRequest } from './exchange.js';
import { parameterNames } from './request-key.js';

/**
 * Words in the name of a header, or of a parameter of the query, that say who asks: credentials, and what a gateway or a
 * client says of a user or a tenant.
 */
const WORDS =
  'auth|authn|authz|authorization|authenticat(?:ed|ion)|cookie2?|jwt|bearer|session(?:id)?|sid|credentials?|secret|password|' +
  'passwd|otp|totp|signature|sig|hmac|dpop|wsse|saml|oidc|oauth2?|assertion|principal|identity|ticket|' +
  '[a-z]*token|[a-z]*key|cert(?:ificate)?|clientcert|ssl-client|dn|webauth|' +
  'users?|[a-z]*userid|[a-z]*username|uid|login|e?mail|account|customer|consumer|client-?id|device-?id|profile|visitor|guest|cart|' +
  'member|subject|sub|actor|tenants?|tenantid|org|organi[sz]ation|company|workspace|role|roles|groups?|permissions?|scopes?|claims?|' +
  'impersonat(?:e|ed|ion|or)|on-behalf-of';
const IDENTITY = new RegExp(`(?:^|[-_.])(?:${WORDS})(?:$|[-_.])`, 'i');

/** What is named so, but says nothing of who asks. */
const HARMLESS = /user-agent|^sec-(?!token|session)|^cf-visitor$/i;

/** A header of its own: the mail address of a person (RFC 9110, section 10.1.2). */
const FROM = 'from';

/** Whether a header, or a parameter of the query, says who asks, judged by its name. */
export function saysWhoAsks(name: string): boolean {
  return name === FROM || (IDENTITY.test(name) && !HARMLESS.test(name));
}

/** The request's headers that say who asks, in lower case. */
export function identityHeaders({ headers }: HttpRequest): string[] {
  return Object.keys(headers).filter((name) => headers[name] !== undefined && saysWhoAsks(name));
}

export interface Separating {
  /** Headers that are part of the key, in lower case. */
  readonly vary: ReadonlySet<string>;
  /** The query's parameters that are; all if left out. */
  readonly query: readonly string[] | undefined;
}

/**
 * What of a request says who asks and isn't part of the key: its answer may be for nobody else. `undefined` when there is
 * nothing.
 */
export function unnamedIdentity(request: HttpRequest, { vary, query }: Separating): string | undefined {
  const headers = identityHeaders(request);
  const unnamed = headers.find((name) => !vary.has(name));
  if (unnamed !== undefined) return unnamed;
  const parameter = query && parameterNames(request).find((name) => saysWhoAsks(name) && !query.includes(name));
  if (parameter !== undefined) return `query: ${parameter}`;
  // Who it is was found out by a header that is part of the key, or by something else.
  if (headers.length > 0) return undefined;
  if (isSomebody(request.user) || isSomebody(request.auth)) return 'user';
  return hasClientCertificate(request) ? 'client certificate' : undefined;
}

function isSomebody(user: unknown): boolean {
  return user !== undefined && user !== null && user !== false;
}

function hasClientCertificate({ socket }: HttpRequest): boolean {
  const certificate = typeof socket?.getPeerCertificate === 'function' ? socket.getPeerCertificate() : undefined;
  return certificate !== null && certificate !== undefined && Object.keys(certificate).length > 0;
}
