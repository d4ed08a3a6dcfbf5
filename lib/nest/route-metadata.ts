import 'reflect-metadata';

/**
 * What Nest has noted of a handler. It has no public names for these, and has never changed them; were it to, what it says
 * would be missing, and tests fail.
 */
const SERVER_SENT_EVENTS = '__sse__';
const PARAMETERS = '__routeArguments__';
const PASSTHROUGH = '__responsePassthrough__';
const VERSION = '__version__';

/** Of the keys of `PARAMETERS`, `type:index`: `@Res()` and `@Next()`. */
const RESPONSE_OR_NEXT = /^[12]:/;

type Class = abstract new (...args: never[]) => unknown;

export function sendsEvents(handler: object): boolean {
  return Reflect.getMetadata(SERVER_SENT_EVENTS, handler) === true;
}

/** Whether Nest leaves the answer to the handler, whose result it then ignores. */
export function writesByItself(controller: Class, property: string | symbol): boolean {
  const parameters: object = Reflect.getMetadata(PARAMETERS, controller, property) ?? {};
  const takesResponse = Object.keys(parameters).some((parameter) => RESPONSE_OR_NEXT.test(parameter));
  return takesResponse && Reflect.getMetadata(PASSTHROUGH, controller, property) !== true;
}

/** The version of the API that a handler, or its controller, belongs to. */
export function versionOf(controller: Class, handler: object): string | undefined {
  const version: unknown = Reflect.getMetadata(VERSION, handler) ?? Reflect.getMetadata(VERSION, controller);
  return version === undefined ? undefined : String(version);
}
