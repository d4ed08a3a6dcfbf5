import type { Key } from '../core/keys.js';

/** A method that may be decorated: one that returns a promise. */
export type AsyncMethod = (...args: never[]) => Promise<unknown>;

/** What the promise of a decorated method resolves to. */
export type ResultOf<M extends AsyncMethod> = Awaited<ReturnType<M>>;

/**
 * Makes the key of a call from its arguments; `this` is the instance. `undefined` leaves the call alone: it is not cached,
 * nothing is evicted, nothing locked.
 *
 * @example (id, locale) => ['product', id, locale]
 */
export type KeyFunction<M extends AsyncMethod> = (...args: Parameters<M>) => Key | undefined;

/** A decorator for an instance's async methods: on a static or synchronous one, or on a getter, it does not compile. */
export type AsyncMethodDecorator<M extends AsyncMethod> = <T extends object>(
  target: T & NotStatic<T>,
  property: string | symbol,
  descriptor: TypedPropertyDescriptor<M>,
) => void;

/** The target of a static method is the class, and nobody injects anything into that. */
type NotStatic<T> = T extends abstract new (...args: never[]) => unknown ? never : unknown;
