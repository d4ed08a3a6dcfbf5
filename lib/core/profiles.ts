import { InvalidOptionError } from './errors.js';
import type { Profiles, ResolvedLoadOptions } from './resolved-options.js';

/** A duration begins with a digit, so the two never meet. */
export function isProfileName(text: string): boolean {
  const lowerCase = text.charCodeAt(0) | 32;
  return lowerCase >= 97 && lowerCase <= 122;
}

/** @throws InvalidOptionError naming the profiles there are */
export function profileOf(profiles: Profiles | undefined, name: unknown): ResolvedLoadOptions {
  const profile = profiles?.get(name as string);
  if (profile) return profile;
  throw new InvalidOptionError('profile', name, expectedProfile(profiles?.keys() ?? [], name));
}

/** What is expected of a profile's name, for an error. */
export function expectedProfile(known: Iterable<string>, name: unknown): string {
  const names = [...known].map((name) => `'${name}'`).join(', ');
  const which = names === '' ? `and it has none: profiles: { ${name}: { ttl: … } }` : `which are ${names}`;
  return `one of the cache's profiles, ${which} (a duration begins with a digit)`;
}
