import type { Clock } from './clock.js';
import { Events } from './events.js';
import { GuardedStore, type GuardOptions } from './guarded-store.js';
import type { StampedeLogger } from './logger.js';
import type { Store } from './store.js';
import { Trouble } from './trouble.js';
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

export function coordinate(
  store: Store,
  clock: Clock,
  random: Random,
  logger: StampedeLogger,
  guard: GuardOptions,
): Coordination {
  const events = new Events();
  let attempts = 0;
  return {
    store: new GuardedStore(store, clock, events, new Trouble(clock, logger), guard),
    wakeUps: new WakeUps(store),
    events,
    clock,
    random,
    newToken: () => `${store.process}#${++attempts}`,
  };
}
