import type { Clock } from './clock.js';
import { Events } from './events.js';
import { GuardedStore } from './guarded-store.js';
import type { Store } from './store.js';
import type { Random } from './waiting.js';
import { WakeUps } from './wake-ups.js';

/** What the cache and the lock service of one store share. */
export interface Coordination {
  readonly store: GuardedStore;
  readonly wakeUps: WakeUps;
  readonly events: Events;
  readonly clock: Clock;
  readonly random: Random;
  /** A token that no attempt had before, here or in another process. */
  newToken(): string;
}

export function coordinate(store: Store, clock: Clock, random: Random, commandTimeout: number): Coordination {
  const events = new Events();
  let attempts = 0;
  return {
    store: new GuardedStore(store, clock, events, commandTimeout),
    wakeUps: new WakeUps(store),
    events,
    clock,
    random,
    newToken: () => `${store.process}#${++attempts}`,
  };
}
