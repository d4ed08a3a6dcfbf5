import { InvalidOptionError } from './errors.js';
import { checkOptionNames, type OptionNames } from './option-names.js';
import type { CacheOptions, CacheProfile } from './options.js';
import { isProfileName } from './profiles.js';
import { LOAD_POLICY_NAMES, resolveLoadOptions, resolvePolicy } from './resolve-load-options.js';
import { type CachePolicy, DEFAULT_POLICY, type ResolvedLoadOptions, type ResolvedPolicy } from './resolved-options.js';

const PROFILE_NAMES: OptionNames<CacheProfile> = { ...LOAD_POLICY_NAMES, ttl: true, cacheIf: true };

/**
 * What holds for the calls of a cache: its defaults and its profiles.
 *
 * @param near whether the cache has a near cache, which calls then use unless they say otherwise
 * @throws InvalidOptionError naming the option
 */
export function resolveCachePolicy({ defaults = {}, profiles = {} }: CacheOptions, near: boolean): CachePolicy {
  checkOptionNames(objectOf(defaults, 'defaults'), LOAD_POLICY_NAMES, 'defaults');
  const policy = resolvePolicy(defaults, { ...DEFAULT_POLICY, near });
  const named = Object.entries<unknown>(objectOf(profiles, 'profiles'));
  return {
    ...policy,
    profiles: new Map(named.map(([name, profile]) => [name, resolveProfile(name, profile, policy)])),
  };
}

function resolveProfile(name: string, given: unknown, policy: ResolvedPolicy): ResolvedLoadOptions {
  if (!isProfileName(name)) {
    throw new InvalidOptionError('profiles', name, 'named by texts that begin with a letter, as no duration does');
  }
  const where = `profiles.${name}`;
  const profile = objectOf(given as CacheProfile, where);
  checkOptionNames(profile, PROFILE_NAMES, where);
  try {
    return resolveLoadOptions(profile, policy);
  } catch (error) {
    throw error instanceof InvalidOptionError ? error.in(where) : error;
  }
}

function objectOf<T>(given: T, option: string): T & object {
  if (typeof given === 'object' && given !== null && !Array.isArray(given)) return given;
  throw new InvalidOptionError(option, given, 'an object');
}
