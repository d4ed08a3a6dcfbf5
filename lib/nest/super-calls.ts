import { AsyncLocalStorage } from 'node:async_hooks';
import type { CacheAccess } from './cache-access.js';

/** One run of a decorated method's body. */
export interface Run {
  readonly decorator: string;
  readonly access: CacheAccess;
  readonly key: unknown;
}

interface Frame extends Run {
  readonly outer: Frame | undefined;
  over: boolean;
}

/**
 * The overrides that run around the present call. An override and the method it calls by `super` may well have the same
 * key, and would then wait for each other: the load for the lock that its own call holds.
 */
const frames = new AsyncLocalStorage<Frame>();

/** Runs the body of a method that overrides another. Only those pay for knowing where they are. */
export async function runAsOverride<T>(run: Run, body: () => Promise<T>): Promise<T> {
  const frame: Frame = { ...run, outer: frames.getStore(), over: false };
  try {
    return await frames.run(frame, body);
  } finally {
    // What it has left running in its context is no part of it any more.
    frame.over = true;
  }
}

/** Whether what one call is about is what another is about as well. */
export type IsSame<K> = (one: K, other: K) => boolean;

/** Whether an override does the very same already, so that what it calls by `super` has nothing to add. */
export function isDoneByOverride({ decorator, access, key }: Run, isSame: IsSame<unknown>): boolean {
  for (let frame = frames.getStore(); frame; frame = frame.outer) {
    if (!frame.over && frame.decorator === decorator && frame.access === access && isSame(frame.key, key)) return true;
  }
  return false;
}
