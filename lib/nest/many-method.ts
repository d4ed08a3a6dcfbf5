import type { Key } from '../core/keys.js';
import type { OnKeyError } from '../core/many.js';
import type { Ttl } from '../core/options.js';
import type { ProfileName } from '../core/profile-names.js';
import type { CacheAsideManyOptions, CacheAsideManyProfileOptions, ManyReturned } from './decorator-options.js';
import type { ResultOf } from './method-decorator.js';

/** A `Map`, by whatever ids: of a `Map` itself TypeScript wants to know them. */
interface MapOfIds {
  readonly size: number;
  get(id: never): unknown;
  keys(): Iterable<unknown>;
}

/** A method that takes a list of ids, and perhaps more, and gives a value for each: an array in their order, or a `Map`. */
export type ManyMethod = (ids: never[], ...rest: never[]) => Promise<readonly unknown[] | MapOfIds>;

/** What the list of such a method has in it. */
export type IdOf<M extends ManyMethod> = Parameters<M>[0] extends readonly (infer Id)[] ? Id : never;

type RestOf<M extends ManyMethod> = Parameters<M> extends [unknown, ...infer Rest] ? Rest : [];

/** What such a method gives for one id, `Error`s aside. A `Map` may have nothing for it. */
export type ValueOf<M extends ManyMethod> =
  ReturnsMap<M> extends true ? Exclude<ElementOf<M>, Error> | undefined : Exclude<ElementOf<M>, Error>;

type ElementOf<M extends ManyMethod> =
  ResultOf<M> extends ReadonlyMap<infer _, infer T> ? T : ResultOf<M> extends readonly (infer T)[] ? T : never;

type ReturnsMap<M extends ManyMethod> = ResultOf<M> extends ReadonlyMap<infer _, unknown> ? true : false;
type GivesErrors<M extends ManyMethod> = Extract<ElementOf<M>, Error> extends never ? false : true;

/**
 * Makes the key of one id, from it and the method's other arguments; `this` is the instance. `undefined` leaves that id
 * alone: it is not cached.
 *
 * @example (id, locale) => ['product', id, locale]
 */
export type IdKeyFunction<M extends ManyMethod> = (id: IdOf<M>, ...rest: RestOf<M>) => Key | undefined;

/**
 * What `@CacheAsideMany` takes after the key. Of a method whose result is a `Map`, or has `Error`s in it, the options must
 * say so: when all is found, the method isn't there to show it.
 */
export type CacheAsideManySettings<M extends ManyMethod> =
  | (ReturnsMap<M> | GivesErrors<M> extends false ? Ttl<ValueOf<M>> | ProfileName : never)
  | ManyOptions<M, GivesErrors<M> extends true ? 'return' : 'throw', ReturnsMap<M> extends true ? 'map' : 'array'>;

type ManyOptions<M extends ManyMethod, E extends OnKeyError, R extends ManyReturned> = (
  | CacheAsideManyOptions<ValueOf<M>, E, R>
  | CacheAsideManyProfileOptions<ValueOf<M>, E, R>
) &
  (E extends 'return' ? { readonly errors: 'return' } : unknown) &
  (R extends 'map' ? { readonly returns: 'map' } : unknown);
