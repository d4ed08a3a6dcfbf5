import { DETACHED, type HeaderValue, type HttpResponse, isFastify } from './exchange.js';
import type { Before } from './shared-response.js';

/**
 * Makes a response that has been sent one that a handler can still write to: what it sets is kept in the object, and goes
 * nowhere. A load in the background runs its handler after its own caller was answered, and Nest has given the handler that
 * caller's response; what it sets now belongs to the answer that will be stored.
 */
export function detach(response: HttpResponse, { status, headers }: Before): void {
  const draft = new Draft(status, headers);
  Object.defineProperty(response, DETACHED, { value: true });
  Object.defineProperties(
    response,
    Object.getOwnPropertyDescriptors(isFastify(response) ? asFastifyReply(draft) : asNodeResponse(draft)),
  );
}

class Draft {
  readonly #headers = new Map<string, HeaderValue>();
  /** The handler has begun to write a body by itself. */
  isWritten = false;

  constructor(
    public status: number,
    headers: Before['headers'],
  ) {
    for (const [name, value] of Object.entries(headers)) if (value !== undefined) this.set(name, value);
  }

  get(name: string): HeaderValue | undefined {
    return this.#headers.get(name.toLowerCase());
  }

  all(): Record<string, HeaderValue> {
    return Object.fromEntries(this.#headers);
  }

  set(name: string, value: HeaderValue): void {
    this.#headers.set(name.toLowerCase(), value);
  }

  add(name: string, value: HeaderValue): void {
    const there = this.get(name);
    this.set(name, there === undefined ? value : [there, value].flat().map(String));
  }

  delete(name: string): void {
    this.#headers.delete(name.toLowerCase());
  }
}

type Headers = Iterable<[string, HeaderValue]>;

/** Express's methods all go by these. */
function asNodeResponse(draft: Draft): object {
  return {
    get statusCode() {
      return draft.status;
    },
    set statusCode(status: number) {
      draft.status = status;
    },
    get headersSent() {
      return draft.isWritten;
    },
    getHeader: (name: string) => draft.get(name),
    getHeaders: () => draft.all(),
    getHeaderNames: () => Object.keys(draft.all()),
    hasHeader: (name: string) => draft.get(name) !== undefined,
    setHeader(name: string, value: HeaderValue) {
      draft.set(name, value);
      return this;
    },
    setHeaders(headers: Headers) {
      for (const [name, value] of headers) draft.set(name, value);
      return this;
    },
    appendHeader(name: string, value: HeaderValue) {
      draft.add(name, value);
      return this;
    },
    removeHeader: (name: string) => draft.delete(name),
    ...writing(draft, ['writeHead', 'flushHeaders', 'write', 'end']),
  };
}

function asFastifyReply(draft: Draft): object {
  return {
    get statusCode() {
      return draft.status;
    },
    set statusCode(status: number) {
      draft.status = status;
    },
    get sent() {
      return draft.isWritten;
    },
    getHeader: (name: string) => draft.get(name),
    getHeaders: () => draft.all(),
    hasHeader: (name: string) => draft.get(name) !== undefined,
    header(name: string, value: HeaderValue) {
      if (name.toLowerCase() === 'set-cookie') draft.add(name, value);
      else draft.set(name, value);
      return this;
    },
    headers(headers: Record<string, HeaderValue>) {
      for (const [name, value] of Object.entries(headers)) draft.set(name, value);
      return this;
    },
    type(type: string) {
      draft.set('content-type', type);
      return this;
    },
    removeHeader(name: string) {
      draft.delete(name);
      return this;
    },
    ...settingStatus(draft),
    ...writing(draft, ['send', 'hijack', 'redirect']),
  };
}

function settingStatus(draft: Draft): object {
  const setStatus = function (this: unknown, status: number) {
    draft.status = status;
    return this;
  };
  return { status: setStatus, code: setStatus };
}

function writing(draft: Draft, names: readonly string[]): object {
  const write = function (this: unknown) {
    draft.isWritten = true;
    return this;
  };
  return Object.fromEntries(names.map((name) => [name, write]));
}
