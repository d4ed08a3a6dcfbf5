import type { Duration } from './durations.js';

/**
 * The names of the profiles of an application's caches: empty, to be filled by the application.
 *
 * @example
 * declare module 'nestjs-stampede-cache' {
 *   interface CacheProfiles {
 *     products: true;
 *   }
 * }
 */
// biome-ignore lint/suspicious/noEmptyInterface: declarations of the application merge with it
export interface CacheProfiles {}

/** A name that `CacheProfiles` declares. None may be a duration, such as `'60s'`. */
export type ProfileName = Exclude<Extract<keyof CacheProfiles, string>, Duration>;
