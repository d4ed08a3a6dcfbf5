import type { Clock, Timer } from './clock.js';

/** Milliseconds between two tries. */
const RETRY_EVERY = 250;
/** So many are remembered at most; beyond that the oldest is given up. */
export const MOST_RETRIES = 10_000;

/**
 * What the store did not acknowledge, tried again and again until it is done: the oldest first and alone, since as long as
 * that gets no answer, the others would not either.
 */
export class Retries<Item> {
  readonly #clock: Clock;
  readonly #attempt: (item: Item) => Promise<boolean>;
  readonly #items = new Set<Item>();
  #timer: Timer | undefined;
  #closed = false;

  /** @param attempt resolves to whether it is done with; rejects when the store did not answer */
  constructor(clock: Clock, attempt: (item: Item) => Promise<boolean>) {
    this.#clock = clock;
    this.#attempt = attempt;
  }

  /** @returns what is given up for it, if there are too many */
  add(item: Item): Item | undefined {
    if (this.#closed) return undefined;
    this.#items.add(item);
    this.#later();
    if (this.#items.size <= MOST_RETRIES) return undefined;
    const [oldest] = this.#items;
    if (oldest) this.#items.delete(oldest);
    return oldest;
  }

  delete(item: Item): void {
    this.#items.delete(item);
  }

  /** Gives up, for good. */
  close(): void {
    this.#closed = true;
    this.#items.clear();
    this.#timer?.clear();
  }

  #later(): void {
    this.#timer ??= this.#clock.after(RETRY_EVERY, () => void this.#retry());
  }

  async #retry(): Promise<void> {
    const [oldest] = this.#items;
    if (oldest && (await this.#try(oldest))) await Promise.all([...this.#items].map((item) => this.#try(item)));
    this.#timer = undefined;
    if (this.#items.size > 0) this.#later();
  }

  /** @returns whether there was an answer */
  async #try(item: Item): Promise<boolean> {
    try {
      if (await this.#attempt(item)) this.#items.delete(item);
      return true;
    } catch {
      // Another key's server may well be there.
      if (this.#items.delete(item)) this.#items.add(item);
      return false;
    }
  }
}
