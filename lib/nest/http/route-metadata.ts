import 'reflect-metadata';

/**
 * What Nest has noted of a handler. It has no public names for these, and has never changed them; were it to, what it says
 * would be missing, and tests fail.
 */
const SERVER_SENT_EVENTS = '__sse__';
const PARAMETERS = '__routeArguments__';
const PASSTHROUGH = '__responsePassthrough__';
const VERSION = '__version__';
const HEADERS = '__headers__';
const MESSAGE_KIND = 'microservices:handler_type';
const MESSAGE_PATTERN = 'microservices:pattern';
const MESSAGE_TRANSPORT = 'microservices:transport';

/** Of the keys of `PARAMETERS`, `type:index`. */
const RESPONSE_OR_NEXT = /^[12]:/;
const REQUEST_HEADERS = /^6:/;
const SESSION_OR_IP = /^(?:7|11):/;
const COOKIES = /^1[45]:/;
const EVENT = 2;

type Class = abstract new (...args: never[]) => unknown;

/** What can be told of a route from its decorators. */
export interface RouteFacts {
  /** `ProductsController.find`. */
  readonly name: string;
  /** The same, and the version of the API that it belongs to. */
  readonly handler: string;
  readonly sendsEvents: boolean;
  /** Whether Nest leaves the answer to the handler, whose result it then ignores. */
  readonly writesByItself: boolean;
  /** What it takes that no key tells apart: all headers, the session, the address. */
  readonly takesUnnamed: string | undefined;
  /** The request's headers that it takes, or says that it varies by, in lower case. */
  readonly headers: readonly string[];
  /** Whether it is a handler of a microservice's events, to which nobody waits for an answer. */
  readonly takesMessagesUnanswered: boolean;
  /** What messages it answers, and on which transport; of other handlers it says nothing. */
  readonly pattern: string;
}

export function factsOf(controller: Class, handler: object & { readonly name: string }): RouteFacts {
  const property = propertyOf(controller, handler) ?? handler.name;
  const parameters: Record<string, { readonly data?: unknown }> =
    Reflect.getMetadata(PARAMETERS, controller, property) ?? {};
  const has = (kind: RegExp) => Object.keys(parameters).some((parameter) => kind.test(parameter));
  const taken = Object.entries(parameters)
    .filter(([parameter]) => REQUEST_HEADERS.test(parameter))
    .map(([, { data }]) => data);
  const named = taken.filter((name) => typeof name === 'string');
  const name = `${controller.name}.${String(property)}`;
  const version = versionOf(controller, handler);
  return {
    name,
    handler: version === undefined ? name : `${name}@${version}`,
    sendsEvents: Reflect.getMetadata(SERVER_SENT_EVENTS, handler) === true,
    writesByItself: has(RESPONSE_OR_NEXT) && Reflect.getMetadata(PASSTHROUGH, controller, property) !== true,
    takesUnnamed:
      taken.length > named.length
        ? 'all headers'
        : has(SESSION_OR_IP)
          ? "the session or the client's address"
          : undefined,
    headers: [...named, ...(has(COOKIES) ? ['cookie'] : []), ...variesBy(handler)].map((header) =>
      header.toLowerCase(),
    ),
    takesMessagesUnanswered: Reflect.getMetadata(MESSAGE_KIND, handler) === EVENT,
    pattern: JSON.stringify([
      Reflect.getMetadata(MESSAGE_PATTERN, handler),
      String(Reflect.getMetadata(MESSAGE_TRANSPORT, handler)),
    ]),
  };
}

/** By which Nest knows what the parameters of a method are; a decorator may have given the function another name. */
function propertyOf(controller: Class, handler: object): string | symbol | undefined {
  for (let prototype = controller.prototype; prototype; prototype = Object.getPrototypeOf(prototype)) {
    const property = Reflect.ownKeys(prototype).find(
      (key) => Object.getOwnPropertyDescriptor(prototype, key)?.value === handler,
    );
    if (property !== undefined) return property;
  }
  return undefined;
}

function versionOf(controller: Class, handler: object): string | undefined {
  const version: unknown = Reflect.getMetadata(VERSION, handler) ?? Reflect.getMetadata(VERSION, controller);
  return version === undefined ? undefined : String(version);
}

/** What `@Header('Vary', …)` says. */
function variesBy(handler: object): string[] {
  const headers: readonly { readonly name: string; readonly value: unknown }[] =
    Reflect.getMetadata(HEADERS, handler) ?? [];
  return headers
    .filter(({ name, value }) => name.toLowerCase() === 'vary' && typeof value === 'string')
    .flatMap(({ value }) => String(value).split(','))
    .map((name) => name.trim());
}
