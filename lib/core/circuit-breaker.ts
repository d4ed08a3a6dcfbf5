import type { Clock } from './clock.js';

/**
 * Leaves a store alone that fails again and again: after so many failures in a row nothing is sent for a while; then one
 * command tries, and all the others wait for how it fares, without being sent.
 */
export class CircuitBreaker {
  readonly #clock: Clock;
  readonly #failures: number;
  readonly #leftAlone: number;
  #inARow = 0;
  #opensAgainAt: number | undefined;
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

  /** Whether a command may be sent now. Whoever is told so must say how it went. */
  allows(): boolean {
    if (this.#opensAgainAt === undefined) return true;
    if (this.#isTrying || this.#clock.now() < this.#opensAgainAt) return false;
    this.#isTrying = true;
    return true;
  }

  succeeded(): void {
    this.#inARow = 0;
    this.#opensAgainAt = undefined;
    this.#isTrying = false;
  }

  failed(): void {
    this.#inARow += 1;
    this.#isTrying = false;
    if (this.#inARow >= this.#failures) this.#opensAgainAt = this.#clock.now() + this.#leftAlone;
  }
}
