import { setTimeout as sleep } from 'node:timers/promises';
import { silentLogger } from '../../lib/core/logger.js';
import { RedisStore, type RedisStoreOptions } from '../../lib/redis/redis-store.js';
import type { StoreGroup } from '../conformance/store-suite.js';

type Options = Partial<RedisStoreOptions> & Pick<RedisStoreOptions, 'connection'>;

/** A store that has not been started. */
export function newStore(options: Options): RedisStore {
  return new RedisStore({ namespace: 'test', commandTimeout: 1_000, logger: silentLogger, ...options });
}

/** A store that is connected and will be woken. */
export async function startStore(options: Options): Promise<RedisStore> {
  const store = newStore(options);
  await Promise.all([untilListening(store), store.start()]);
  return store;
}

/** Resolves at the next subscription, or when the one that there is is lost. Takes the place of whoever listened for wake-ups. */
export function untilListening(store: RedisStore): Promise<void> {
  return new Promise((resolve) => {
    store.onWake((token) => token === undefined && resolve());
  });
}

/** For one that listens: resolves when it does so again, after it was lost. */
export async function untilListeningAgain(store: RedisStore): Promise<void> {
  await untilListening(store);
  await untilListening(store);
}

/** For the conformance suite: stores in a namespace of their own. */
export async function openGroup(
  connection: RedisStoreOptions['connection'],
  namespace: string,
  count: number,
): Promise<StoreGroup> {
  const stores = await Promise.all(Array.from({ length: count }, () => startStore({ connection, namespace })));
  return { stores, pass: (milliseconds) => sleep(milliseconds) };
}
