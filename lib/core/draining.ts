import type { Clock } from './clock.js';

/** Resolves when `done` does, and after so many milliseconds at the latest. */
export function atMost(clock: Clock, patience: number, done: Promise<unknown>): Promise<void> {
  return new Promise<void>((resolve) => {
    const timer = clock.after(patience, resolve);
    void done.then(() => {
      timer.clear();
      resolve();
    });
  });
}

/** Waits, at most so many milliseconds, until nothing is under way, what begins meanwhile included. */
export async function untilLanded(clock: Clock, patience: number, underWay: () => Promise<void>[]): Promise<void> {
  let timeIsUp = false;
  const landed = async () => {
    for (let left = underWay(); left.length > 0 && !timeIsUp; left = underWay()) await Promise.allSettled(left);
  };
  await atMost(clock, patience, landed());
  timeIsUp = true;
}
