import type { LoadPolicy } from '../core/options.js';
import type { OptionNames } from './option-names.js';

/** The options of a load that a module may set for all. */
export const LOAD_POLICY_NAMES: OptionNames<LoadPolicy> = {
  lease: true,
  wait: true,
  maxLoad: true,
  onWaitTimeout: true,
  shareErrors: true,
  ttlJitter: true,
  isolate: true,
  codec: true,
  abortWhenUnused: true,
  staleWhileRevalidate: true,
  staleIfError: true,
  errorHoldOff: true,
  softTimeout: true,
  earlyRefresh: true,
  refreshContext: true,
  onRedisError: true,
  near: true,
};
