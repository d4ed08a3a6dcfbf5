import type { Clock } from './clock.js';
import type { WaitingReply } from './store.js';
import type { TokenWatch } from './wake-ups.js';

/** A number from 0 up to 1, like `Math.random`. */
export type Random = () => number;

/** With wake-ups a poll is a safety net: at random between these, in milliseconds. */
const SAFETY_POLL = [250, 500] as const;
/** Without, it is how one learns that a load ended: at random between these at first, in milliseconds, growing by half each time. */
const FIRST_POLL = [20, 80] as const;
const GROWTH = 1.5;
/** After a lease's end followers look again within so many milliseconds, not all at once. */
const EXPIRY_SPREAD = 4;

/** How a caller in line sleeps: until a wake-up, the lock's expiry, or a jittered poll, whatever comes first. */
export class Waiting {
  readonly #clock: Clock;
  readonly #random: Random;
  #polls = 0;
  #wake: ((by: 'woken' | 'due') => void) | undefined;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Sleeps until it is worth looking again. `woken`: the lock has ended; `due`: its lease is over or a poll is due. */
  sleep(reply: WaitingReply, watch: TokenWatch): Promise<'woken' | 'due'> {
    return new Promise((resolve) => {
      const delay = Math.min(this.#pollDelay(reply.wakes), reply.leaseLeft + 1 + this.#random() * EXPIRY_SPREAD);
      const timer = this.#clock.after(delay, () => this.#wake?.('due'));
      this.#wake = (by) => {
        this.#wake = undefined;
        timer.clear();
        resolve(by);
      };
      watch.listen((certain) => this.#wake?.(certain ? 'woken' : 'due'));
    });
  }

  /** Ends the sleep, if there is one. */
  stir(): void {
    this.#wake?.('due');
  }

  #pollDelay(wakes: boolean): number {
    const [least, most] = wakes ? SAFETY_POLL : FIRST_POLL;
    const delay = least + this.#random() * (most - least);
    return wakes ? delay : Math.min(delay * GROWTH ** this.#polls++, SAFETY_POLL[1]);
  }
}
