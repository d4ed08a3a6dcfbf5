import type { Clock } from './clock.js';
import { CircuitOpenError, StoreReplyError } from './errors.js';

/**
 * Leaves a store alone that fails again and again: after so many failures in a row nothing is sent for a while; then one
 * command tries, and all the others wait for how it fares, without being sent.
 */
export class CircuitBreaker {
  readonly #clock: Clock;
  readonly #failures: number;
  readonly #leftAlone: number;
  #inARow = 0;
  /** When one command may try; `undefined` while everything is sent. */
  #triesAt: number | undefined;
  #isTrying = false;

  /**
   * @param failures so many in a row open it
   * @param leftAlone milliseconds until one command tries
   */
  constructor(clock: Clock, failures: number, leftAlone: number) {
    this.#clock = clock;
    this.#failures = failures;
    this.#leftAlone = leftAlone;
  }

  /**
   * A command is about to be sent. What comes of it is to be told: `succeeded` or `failed`.
   *
   * @returns whether it is the one that tries, which is to be told, too
   * @throws CircuitOpenError when it is not to be sent, while the store is left alone
   */
  begin(): boolean {
    if (this.#triesAt === undefined) return false;
    if (this.#isTrying || this.#clock.now() < this.#triesAt) throw new CircuitOpenError();
    this.#isTrying = true;
    return true;
  }

  succeeded(wasTry: boolean): void {
    if (wasTry) this.#isTrying = false;
    this.#answered();
  }

  failed(error: unknown, wasTry: boolean): void {
    if (wasTry) this.#isTrying = false;
    // A store that answers with an error is there; its other commands may well work.
    if (error instanceof StoreReplyError) this.#answered();
    else this.#failed(wasTry);
  }

  /**
   * Sends a command, and takes note of how it fares.
   *
   * @throws CircuitOpenError without sending it, while the store is left alone
   */
  async run<T>(send: () => Promise<T>): Promise<T> {
    const isTry = this.begin();
    try {
      const reply = await send();
      this.succeeded(isTry);
      return reply;
    } catch (error) {
      this.failed(error, isTry);
      throw error;
    }
  }

  #answered(): void {
    this.#inARow = 0;
    this.#triesAt = undefined;
  }

  /** What was sent before it was opened, and fails only now, is no news: it doesn't put off the next try. */
  #failed(isTry: boolean): void {
    this.#inARow += 1;
    const opens = this.#triesAt === undefined ? this.#inARow >= this.#failures : isTry;
    if (opens) this.#triesAt = this.#clock.now() + this.#leftAlone;
  }
}
