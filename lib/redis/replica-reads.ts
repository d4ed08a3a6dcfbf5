import { CircuitBreaker } from '../core/circuit-breaker.js';
import { systemClock, type Timer } from '../core/clock.js';
import type { ReadReply } from '../core/store.js';
import { type Client, isCluster } from './client.js';
import { askForNodes, nodesOf } from './cluster-nodes.js';

/** A replica that fails is left alone for so many milliseconds; then one read tries. */
const LEFT_ALONE = 1_000;

/**
 * Reads from replicas. One that is away, or that doesn't answer in half of a command's time, is nobody's trouble: the primary
 * is asked instead.
 */
export class ReplicaReads {
  readonly #timeout: number;
  /** One for each part of the data: its replicas may be away when others aren't. */
  readonly #breakers = new Map<string, CircuitBreaker>();

  /** @param timeout milliseconds until a replica's reply isn't waited for any more */
  constructor(timeout: number) {
    this.#timeout = timeout;
  }

  /**
   * @param name any of the names that are read
   * @returns `undefined` when the primary is to be asked
   */
  async read(client: Client, name: string, send: () => Promise<ReadReply>): Promise<ReadReply | undefined> {
    const [primary = '', replica] = isCluster(client) ? nodesOf(client, name) : ['', 'the one that Sentinel named'];
    if (replica === undefined) {
      if (isCluster(client)) askForNodes(client);
      return undefined;
    }
    let breaker = this.#breakers.get(primary);
    if (!breaker) {
      breaker = new CircuitBreaker(systemClock, 1, LEFT_ALONE);
      this.#breakers.set(primary, breaker);
    }
    try {
      return await breaker.run(() => this.#inTime(send()));
    } catch {
      return undefined;
    }
  }

  async #inTime(reply: Promise<ReadReply>): Promise<ReadReply> {
    let timer: Timer | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = systemClock.after(this.#timeout, () => reject(new Error('no reply from the replica')));
    });
    try {
      const found = await Promise.race([reply, late]);
      const failed = found.texts.find((text) => text instanceof Error);
      if (failed) throw failed;
      return found;
    } finally {
      timer?.clear();
    }
  }
}
