/** What Express 5's and Fastify 5's requests have in common, as far as it is used here. */
export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  /** The URL as it was asked for, whatever a router made of `url`. */
  readonly originalUrl?: string;
  /** The host that was asked for, without the port. */
  readonly hostname?: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** What an authentication guard leaves here. */
  readonly user?: unknown;
}

/** The same of their responses. */
export interface HttpResponse {
  readonly statusCode: number;
  status(code: number): unknown;
  header(name: string, value: string): unknown;
  getHeader(name: string): unknown;
  /** Express: whether the response has begun. */
  readonly headersSent?: boolean;
  /** Fastify: the same, or that the handler said that it would write by itself. */
  readonly sent?: boolean;
}

/** Whether the handler answers, or has answered, by itself. */
export function isAnswered({ headersSent, sent }: HttpResponse): boolean {
  return headersSent === true || sent === true;
}

/** Whether the request says who asks: its answer may be for nobody else. */
export function hasCredentials({ headers, user }: HttpRequest): boolean {
  return (user !== undefined && user !== null) || CREDENTIALS.some((name) => headers[name] !== undefined);
}

const CREDENTIALS = ['authorization', 'proxy-authorization', 'cookie', 'x-api-key', 'x-auth-token', 'x-access-token'];
