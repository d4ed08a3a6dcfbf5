import type { Clock } from './clock.js';
import type { WaitingReply } from './store.js';
import type { TokenWatch } from './wake-ups.js';

/** A number from 0 up to 1, like `Math.random`. */
export type Random = () => number;

/** With wake-ups a poll is a safety net: at random between these, in milliseconds. */
const SAFETY_POLL = [250, 500] as const;
/**
 * Who waits for a load has more to notice: that the store doesn't answer any more. Often enough that its own load begins
 * soon after that, and not so often that a load of 200 ms costs a look.
 */
export const LOOK = [210, 250] as const;
/** Without, it is how one learns that a load ended: at random between these at first, in milliseconds, growing by half each time. */
const FIRST_POLL = [20, 80] as const;
const GROWTH = 1.5;
/** After a lease's end followers look again within so many milliseconds, not all at once. */
const EXPIRY_SPREAD = 4;

/** `woken`: the lock has ended; `unsure`: that may have been missed; `expiry`: its lease is over, unless it was renewed. */
export type AwakeBy = 'woken' | 'unsure' | 'expiry' | 'poll';

/** How a caller in line sleeps: until a wake-up, the lock's expiry, or a jittered poll, whatever comes first. */
export class Waiting {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #safetyPoll: readonly [least: number, most: number];
  #polls = 0;
  #wake: ((by: AwakeBy) => void) | undefined;
  /** While it was awake, and looked, it was told that it may have missed something. */
  #missed = false;

  constructor(clock: Clock, random: Random, safetyPoll: readonly [number, number] = SAFETY_POLL) {
    this.#clock = clock;
    this.#random = random;
    this.#safetyPoll = safetyPoll;
  }

  /** Sleeps until it is worth looking again. */
  sleep({ leaseLeft, wakes }: Pick<WaitingReply, 'leaseLeft' | 'wakes'>, watch: TokenWatch): Promise<AwakeBy> {
    return new Promise((resolve) => {
      const poll = this.#pollDelay(wakes);
      const expiry = leaseLeft + 1 + this.#random() * EXPIRY_SPREAD;
      const timer = this.#clock.after(Math.min(poll, expiry), () => this.#wake?.(poll < expiry ? 'poll' : 'expiry'));
      const wake = (by: AwakeBy) => {
        this.#wake = undefined;
        timer.clear();
        resolve(by);
      };
      this.#wake = wake;
      watch.listen((certain) => {
        if (this.#wake) this.#wake(certain ? 'woken' : 'unsure');
        else this.#missed ||= !certain;
      });
      if (this.#missed) this.#wake?.('unsure');
      this.#missed = false;
    });
  }

  /** Ends the sleep, if there is one. */
  stir(): void {
    this.#wake?.('unsure');
  }

  #pollDelay(wakes: boolean): number {
    const [least, most] = wakes ? this.#safetyPoll : FIRST_POLL;
    const delay = least + this.#random() * (most - least);
    return wakes ? delay : Math.min(delay * GROWTH ** this.#polls++, this.#safetyPoll[1]);
  }
}
