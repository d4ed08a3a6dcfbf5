import 'reflect-metadata';
import type { ModulesContainer } from '@nestjs/core';
import { InvalidOptionError } from '../core/errors.js';
import { expectedProfile } from '../core/profiles.js';
import type { StampedeCacheOptions } from './module-options.js';
import { STAMPEDE_CACHE_OPTIONS, stampedeCacheToken } from './tokens.js';

/** A decorated method that names a profile. */
interface ProfileUse {
  readonly cache: string | undefined;
  readonly profile: string;
  /** The class and the method, as in `ProductsService.find`. */
  readonly where: string;
}

type Module = ModulesContainer extends Map<string, infer M> ? M : never;

/** The key of the metadata of a prototype that holds its `ProfileUse`s, inherited ones included. */
const PROFILE_USES = 'nestjs-stampede-cache:profiles';

/** Remembers the use for the check at boot: when a class is decorated, nobody knows what profiles there will be. */
export function noteProfile(target: object, use: ProfileUse): void {
  Reflect.defineMetadata(PROFILE_USES, [...usesOf(target), use], target);
}

/**
 * Checks that a cache has the profiles that those name who will be given it, request-scoped ones included.
 *
 * @param name the name of the cache
 * @throws InvalidOptionError naming the method and the profiles there are
 */
export function checkProfiles(
  options: StampedeCacheOptions,
  name: string | undefined,
  modules: ModulesContainer,
): void {
  const known = Object.keys(options.profiles ?? {});
  for (const { cache, profile, where } of servedBy(options, name, modules).flatMap(usesIn)) {
    if (cache !== name || known.includes(profile)) continue;
    throw new InvalidOptionError(`The profile of ${where}`, profile, expectedProfile(known, profile));
  }
}

/** The modules whose providers get this cache: those that import it, and when it is global all that import no other. */
function servedBy(options: StampedeCacheOptions, name: string | undefined, modules: ModulesContainer): Module[] {
  const token = stampedeCacheToken(name);
  const isRegistration = (module: Module) => module.providers.has(token);
  const isThis = (module: Module) => module.providers.get(STAMPEDE_CACHE_OPTIONS)?.instance === options;
  return [...modules.values()].filter((module) => {
    const imported = [...module.imports].filter(isRegistration);
    const serving = imported.find((registration) => !registration.isGlobal) ?? imported[0];
    return serving !== undefined && isThis(serving);
  });
}

function usesIn({ providers, controllers, injectables }: Module): readonly ProfileUse[] {
  return [...providers.values(), ...controllers.values(), ...injectables.values()].flatMap(({ metatype }) => {
    const { prototype } = Object(metatype) as { prototype?: unknown };
    return typeof prototype === 'object' && prototype !== null ? usesOf(prototype) : [];
  });
}

function usesOf(prototype: object): readonly ProfileUse[] {
  return Reflect.getMetadata(PROFILE_USES, prototype) ?? [];
}
