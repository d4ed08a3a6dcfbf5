import type { Clock } from './clock.js';
import { CacheClosedError, InvalidOptionError } from './errors.js';
import type { StoreCommand } from './events.js';
import type { StampedeLogger } from './logger.js';
import { messageOf } from './message-of.js';

/** So long after the last failure, in milliseconds, a success ends the trouble; a store that flickers is one trouble. */
const CALM = 1_000;
/** So long after it, in milliseconds, any success does: what failed may not be asked for again for hours. */
const FORGOTTEN = 60_000;

interface Current {
  readonly since: number;
  failures: number;
  last: number;
  /** What has failed and not worked since: a full server reads well, and yet every miss of it fails. */
  readonly failing: Set<StoreCommand | 'start'>;
}

/** The log's two lines: one when trouble with the store begins, one when it is over. */
export class Trouble {
  readonly #clock: Clock;
  readonly #logger: StampedeLogger;
  #current: Current | undefined;

  constructor(clock: Clock, logger: StampedeLogger) {
    this.#clock = clock;
    this.#logger = logger;
  }

  failed(command: StoreCommand | 'start', error: unknown): void {
    if (error instanceof CacheClosedError || error instanceof InvalidOptionError) return;
    const now = this.#clock.now();
    const begins = this.#current === undefined;
    this.#current ??= { since: now, failures: 0, last: now, failing: new Set() };
    this.#current.failures += 1;
    this.#current.last = now;
    this.#current.failing.add(command);
    if (!begins) return;
    this.#say(
      'error',
      `Trouble with the cache's store, loaders answer meanwhile: '${command}' failed: ${messageOf(error)}`,
    );
  }

  succeeded(command: StoreCommand): void {
    if (!this.#current) return;
    const { since, failures, last, failing } = this.#current;
    failing.delete(command);
    failing.delete('start');
    const calmFor = this.#clock.now() - last;
    if (calmFor < (failing.size === 0 ? CALM : FORGOTTEN)) return;
    this.#current = undefined;
    this.#say(
      'log',
      `The cache's store works again: ${failures} command${failures === 1 ? '' : 's'} failed within ${Math.round(last - since)} ms.`,
    );
  }

  /** A logger that throws, as one may whose worker has ended, is not to decide what comes of a command. */
  #say(level: 'log' | 'error', line: string): void {
    try {
      this.#logger[level](line);
    } catch {}
  }
}
