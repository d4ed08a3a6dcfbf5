import { setTimeout as sleep } from 'node:timers/promises';

/** Milliseconds, finer than Date's, that processes of one machine share. */
export const now = () => Number(process.hrtime.bigint()) / 1e6;

/** Resolves at that moment, within a fraction of a millisecond: several processes start together. */
export async function until(moment) {
  const left = moment - now();
  if (left > 4) await sleep(left - 4);
  // The last 4 ms at most: timers are too coarse.
  while (now() < moment);
}

export class DeadlineError extends Error {
  constructor(what, milliseconds) {
    super(`${what}: nothing for ${milliseconds / 1000} s`);
  }
}

/** @throws DeadlineError when it takes longer */
export async function within(milliseconds, what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new DeadlineError(what, milliseconds)), milliseconds);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
