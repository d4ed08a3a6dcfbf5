import 'reflect-metadata';
import { Inject } from '@nestjs/common';
import { isBypassed } from './bypass.js';
import type { CacheAccess } from './cache-access.js';
import { CacheNotInjectedError } from './errors.js';
import type { KeyOfCall } from './key-of-call.js';
import type { AsyncMethod, AsyncMethodDecorator } from './method-decorator.js';
import { noteProfile } from './profile-uses.js';
import { type IsSame, isDoneByOverride, runAsOverride } from './super-calls.js';
import { cacheAccessToken } from './tokens.js';

/** One call of a decorated method that is not left alone. */
export interface DecoratedCall<K> {
  readonly access: CacheAccess;
  /** What it is about. */
  readonly key: K;
  /** The class and the method, as in `ProductsService.find`. */
  readonly where: string;
  readonly args: readonly unknown[];
  /** Runs the method itself. */
  proceed(): Promise<unknown>;
  /** The same with other arguments. */
  proceedWith(args: readonly unknown[]): Promise<unknown>;
}

export interface Decoration<K> {
  /** The decorator's name, for errors. */
  readonly decorator: string;
  /** The name of the cache. */
  readonly cache: string | undefined;
  /** The name of the profile, if it has one: looked for at boot. */
  readonly profile?: string | undefined;
  readonly keyOf: KeyOfCall<K>;
  /** Whether a call by `super` is about what its override is about already. By default when their keys are the same. */
  readonly isSame?: IsSame<K>;
  /** Whether one for each cache is all that a method can have: with the same key two would wait for each other. */
  readonly once?: boolean;
  /** What a call is turned into. */
  around(call: DecoratedCall<K>): Promise<unknown>;
}

type Method = (this: object | undefined, ...args: unknown[]) => Promise<unknown>;

/**
 * Puts a function in the place of a method, which finds the instance's cache and the key of the call, and does the rest by
 * `around`. Its name, length and metadata are the method's, so that decorators above and below it find what they expect.
 */
export function decorateMethod<M extends AsyncMethod, K>(decoration: Decoration<K>): AsyncMethodDecorator<M> {
  const { decorator, cache, profile, keyOf, isSame = Object.is, once = false, around } = decoration;
  const token = cacheAccessToken(cache);
  return (target: object, property: string | symbol, descriptor: PropertyDescriptor | undefined) => {
    const where = nameOf(target, property);
    const method = checkMethod(decorator, where, target, descriptor);
    if (once) noteOnce(`${decorator} ${String(token)}`, decorator, where, target, property);
    injectInto(target, token);
    if (profile !== undefined) noteProfile(target, { cache, profile, where });
    const overrides = typeof Object.getPrototypeOf(target)?.[property] === 'function';

    const decorated: Method = async function (...args) {
      if (isBypassed(this)) return method.apply(this, args);
      const access = (this as { [token]?: CacheAccess } | undefined)?.[token];
      if (!this || !access) throw new CacheNotInjectedError(where);
      const key = keyOf(this, args, where);
      if (key === undefined) return method.apply(this, args);
      const run = { decorator, access, key };
      if (isDoneByOverride(run, isSame as IsSame<unknown>)) return method.apply(this, args);
      const call = (given: readonly unknown[]) => method.apply(this, given as unknown[]);
      const proceedWith = overrides ? (given: readonly unknown[]) => runAsOverride(run, () => call(given)) : call;
      return around({ access, key, where, args, proceed: () => proceedWith(args), proceedWith });
    };
    becomeLike(decorated, method);
    (descriptor as PropertyDescriptor).value = decorated;
  };
}

function nameOf(target: object, property: string | symbol): string {
  const { name } = typeof target === 'function' ? target : target.constructor;
  return `${name}.${String(property)}`;
}

/** For those whom no compiler told. */
function checkMethod(
  decorator: string,
  where: string,
  target: object,
  descriptor: PropertyDescriptor | undefined,
): Method {
  if (typeof target === 'function') {
    throw new TypeError(
      `${decorator} can't be used on ${where}: it is static, and Nest injects a cache into instances.`,
    );
  }
  if (typeof descriptor?.value !== 'function') {
    throw new TypeError(`${decorator} can't be used on ${where}: it is not a method.`);
  }
  return descriptor.value;
}

/** By the methods' names, which no decorator in between changes, the decorators that each has. */
const noted = new WeakMap<object, Map<string | symbol, Set<string>>>();

function noteOnce(what: string, decorator: string, where: string, target: object, property: string | symbol): void {
  const methods = noted.get(target) ?? new Map<string | symbol, Set<string>>();
  const those = methods.get(property) ?? new Set<string>();
  if (those.has(what)) {
    throw new TypeError(
      `${decorator} is on ${where} twice for one cache: with the same key the two would wait for each other. Leave one ` +
        'out, or let one of them use another cache: { cache: name }.',
    );
  }
  noted.set(target, methods.set(property, those.add(what)));
}

/** Once for a class and those that extend it, however many methods are decorated: Nest would inject each anew. */
function injectInto(target: object, token: symbol): void {
  if (token in target) return;
  Object.defineProperty(target, token, { value: undefined, writable: true, configurable: true });
  Inject(token)(target, token);
}

function becomeLike(decorated: Method, method: Method): void {
  for (const key of Reflect.ownKeys(method)) {
    if (key === 'prototype') continue;
    Object.defineProperty(decorated, key, Object.getOwnPropertyDescriptor(method, key) as PropertyDescriptor);
  }
  for (const key of Reflect.getOwnMetadataKeys(method)) {
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, method), decorated);
  }
}
