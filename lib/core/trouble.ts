import type { Clock } from './clock.js';
import { messageOf } from './errors.js';
import type { StampedeLogger } from './logger.js';

/** So long after the last failure, in milliseconds, a success ends the trouble; a store that flickers is one trouble. */
const CALM = 1_000;

/** The log's two lines: one when trouble with the store begins, one when it is over. */
export class Trouble {
  readonly #clock: Clock;
  readonly #logger: StampedeLogger;
  #current: { readonly since: number; failures: number; last: number } | undefined;

  constructor(clock: Clock, logger: StampedeLogger) {
    this.#clock = clock;
    this.#logger = logger;
  }

  failed(command: string, error: unknown): void {
    const now = this.#clock.now();
    if (this.#current) {
      this.#current.failures += 1;
      this.#current.last = now;
      return;
    }
    this.#current = { since: now, failures: 1, last: now };
    this.#logger.error(
      `Trouble with the cache's store, loaders answer meanwhile: '${command}' failed: ${messageOf(error)}`,
    );
  }

  succeeded(): void {
    if (!this.#current) return;
    const { since, failures, last } = this.#current;
    if (this.#clock.now() - last < CALM) return;
    this.#current = undefined;
    this.#logger.log(`The cache's store works again: ${failures} commands failed in ${Math.round(last - since)} ms.`);
  }
}
