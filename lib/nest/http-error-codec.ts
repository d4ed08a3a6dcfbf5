import * as nest from '@nestjs/common';
import { HttpException, type HttpExceptionOptions } from '@nestjs/common';
import { type ErrorCodec, remoteErrorCodec } from '../core/outcome.js';

/** An exception as it travels. */
interface WrittenException {
  /** The name of the class, if it is one of Nest's. */
  readonly builtIn?: string | undefined;
  readonly name: string;
  readonly message: string;
  readonly status: number;
  readonly response: string | Record<string, unknown>;
  readonly errorCode?: string | undefined;
}

type BuiltIn = new (response: unknown, options: HttpExceptionOptions) => HttpException;

/** `NotFoundException` and its like, by name, whichever this version of Nest has. */
const BUILT_IN = new Map<string, BuiltIn>(
  Object.entries(nest).flatMap(([name, value]) =>
    typeof value === 'function' && value.prototype instanceof HttpException ? [[name, value as BuiltIn]] : [],
  ),
);

/**
 * Carries Nest's exceptions from the process that loads to those that wait for it, so that a request there is answered with
 * the same status and body. A `NotFoundException` arrives as one; an exception of the application's own class, which the
 * receiver can't make, as an `HttpException` with that class's name. All other errors go the way of the core.
 */
export const httpErrorCodec: ErrorCodec = {
  encode(error) {
    if (!(error instanceof HttpException)) return remoteErrorCodec.encode(error);
    const { name } = error.constructor;
    const { errorCode } = error as { errorCode?: string };
    const exception: WrittenException = {
      builtIn: BUILT_IN.get(name) === error.constructor ? name : undefined,
      name: error.name,
      message: error.message,
      status: error.getStatus(),
      response: error.getResponse() as WrittenException['response'],
      errorCode,
    };
    return JSON.stringify({ exception });
  },
  decode(text) {
    const { exception } = JSON.parse(text) as { exception?: WrittenException };
    return exception ? toException(exception) : remoteErrorCodec.decode(text);
  },
};

function toException({ builtIn, name, message, status, response, errorCode }: WrittenException): HttpException {
  const options: HttpExceptionOptions = errorCode === undefined ? {} : { errorCode };
  const Class = builtIn === undefined ? undefined : BUILT_IN.get(builtIn);
  const error = Class ? new Class(response, options) : new HttpException(response, status, options);
  error.name = name;
  error.message = message;
  return error;
}
