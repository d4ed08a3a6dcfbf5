import type { Redis } from 'ioredis';
import { NotReplicatedError } from '../core/errors.js';
import { type Client, isCluster, isReplyError } from './client.js';
import { askForNodes, clientAt, nodesOf } from './cluster-nodes.js';

/**
 * Writes that count only when so many replicas have them, by `WAIT`. That waits for what was written on its own connection,
 * so on a Cluster each script is sent to its node by hand. And it holds up all that comes after it on that connection, so
 * these have one to themselves, and what was written meanwhile shares the next `WAIT`.
 */
export class ConfirmedWrites {
  readonly #replicas: number;
  readonly #timeout: number;
  readonly #links = new WeakMap<Redis, Link>();

  /** @param timeout milliseconds that replicas have for each `WAIT` */
  constructor(replicas: number, timeout: number) {
    this.#replicas = replicas;
    this.#timeout = timeout;
  }

  /**
   * Sends a script and waits for the replicas, if its reply says that it wrote.
   *
   * @param name the key's, which says what node it lies on
   * @throws NotReplicatedError when too few have it in time; the primary has it all the same
   * @throws something that is no `ReplyError` when it may be sent again
   */
  async run<T>(
    client: Client,
    name: string,
    send: (client: Redis) => Promise<T>,
    wrote: (reply: T) => boolean = () => true,
  ): Promise<T> {
    if (!isCluster(client)) return this.#run(client, send, wrote);
    const [primary] = nodesOf(client, name);
    const node = clientAt(client, primary);
    if (!node) {
      askForNodes(client);
      throw new Error(`no connection to the Cluster's node ${primary}`);
    }
    try {
      return await this.#run(node, send, wrote);
    } catch (error) {
      if (!isReplyError(error) || !/^(MOVED|ASK)/.test(error.message)) throw error;
      // To follow it would be of no use for one that is under way: until the slot has moved, no node takes several keys of it.
      client.refreshSlotsCache();
      throw new Error(`the slot moves: ${error.message}`);
    }
  }

  /** The fewest replicas that a primary has right now. */
  async fewestReplicas(client: Client): Promise<number> {
    const primaries = isCluster(client) ? client.nodes('master') : [client];
    return Math.min(...(await Promise.all(primaries.map((primary) => primary.wait(this.#replicas, this.#timeout)))));
  }

  async #run<T>(redis: Redis, send: (redis: Redis) => Promise<T>, wrote: (reply: T) => boolean): Promise<T> {
    let link = this.#links.get(redis);
    if (!link) {
      link = new Link(redis, this.#replicas, this.#timeout);
      this.#links.set(redis, link);
    }
    const connected = link.connection;
    const reply = await send(redis);
    if (!wrote(reply)) return reply;
    const confirmations = await link.wait();
    // Of what was written on a connection, only that connection's WAIT tells.
    if (connected !== link.connection) throw new Error('the connection was lost before replicas had confirmed');
    if (confirmations < this.#replicas) throw new NotReplicatedError(confirmations, this.#replicas, this.#timeout);
    return reply;
  }
}

/** A client, which of its connections it has now, and its next `WAIT`. */
class Link {
  readonly #redis: Redis;
  readonly #replicas: number;
  readonly #timeout: number;
  #next: Promise<number> | undefined;
  /** Another number for each connection. */
  connection = 0;

  constructor(redis: Redis, replicas: number, timeout: number) {
    this.#redis = redis;
    this.#replicas = replicas;
    this.#timeout = timeout;
    redis.on('close', () => {
      this.connection += 1;
    });
  }

  /** How many replicas confirmed. One `WAIT` for all whose replies came at once. */
  wait(): Promise<number> {
    this.#next ??= new Promise((resolve) => {
      setImmediate(() => {
        this.#next = undefined;
        resolve(this.#redis.wait(this.#replicas, this.#timeout));
      });
    });
    return this.#next;
  }
}
