import type { Redis } from 'ioredis';
import { systemClock } from '../core/clock.js';

/** Milliseconds between two looks whether the subscription is alive, and how long an answer may take. */
const BEAT = 1_000;
/** So long after a `PING` that was answered was sent, in milliseconds, its subscription is trusted. */
export const TRUSTED = 2 * BEAT;

/**
 * Asks a subscription, again and again, whether it is alive. Messages and replies come in order, so what was published before
 * a `PING` has been told when its answer is here; a socket that is only open on our side never answers.
 */
export class Heartbeat {
  readonly #client: Redis;
  readonly #beat: (trusted: number) => void;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  /** @param beat told for how many milliseconds the subscription is trusted from now on */
  constructor(client: Redis, beat: (trusted: number) => void) {
    this.#client = client;
    this.#beat = beat;
  }

  /** @param sentAt when something was sent that has been answered now */
  start(sentAt: number): void {
    if (this.#stopped) return;
    this.#beat(sentAt + TRUSTED - systemClock.now());
    this.#timer = after(Math.max(0, sentAt + BEAT - systemClock.now()), () => void this.#ping());
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async #ping(): Promise<void> {
    const sentAt = systemClock.now();
    this.#timer = after(BEAT, () => this.#client.disconnect());
    try {
      await this.#client.ping();
    } catch {
      // It is lost, or soon will be: that is told by its end.
      return;
    }
    clearTimeout(this.#timer);
    this.start(sentAt);
  }
}

/** Whether the process goes on is its socket's to say. */
function after(delay: number, run: () => void): NodeJS.Timeout {
  return setTimeout(run, delay).unref();
}
