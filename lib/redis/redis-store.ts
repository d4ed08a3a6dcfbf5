import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../core/clock.js';
import { CacheClosedError, StoreDeniedError } from '../core/errors.js';
import type { StampedeLogger } from '../core/logger.js';
import { messageOf } from '../core/message-of.js';
import { DEFAULTS, type ReadFrom } from '../core/options.js';
import { resolveReadFrom, resolveReplicas } from '../core/resolve-cache-options.js';
import type {
  ChangeListener,
  EndReply,
  EndRequest,
  LeadReply,
  LeadRequest,
  ReadReply,
  RenewReply,
  RenewRequest,
  ReplaceRequest,
  Store,
} from '../core/store.js';
import { type Client, isCluster } from './client.js';
import { duplicateForReplicaReads } from './client-settings.js';
import { nodesOf } from './cluster-nodes.js';
import { ConfirmedWrites } from './confirmed-writes.js';
import { Connection } from './connection.js';
import type { ConnectionOption } from './connection-source.js';
import { end } from './end.js';
import { KeyNames } from './key-names.js';
import { lead } from './lead.js';
import { read } from './read.js';
import { renew } from './renew.js';
import { replace } from './replace.js';
import { ReplicaReads } from './replica-reads.js';
import { rightsFor } from './rights.js';
import { send } from './send.js';
import { Subscription } from './subscription.js';

/** Where Redis is, and how it is used. */
export interface RedisStoreOptions {
  /** A URL, options of ioredis, a client of it (which is duplicated, never closed), or a function that returns one. */
  readonly connection: ConnectionOption;
  /** The first part of every key and channel. */
  readonly namespace: string;
  /** Milliseconds, from its first sending, until a command whose connection was lost is no longer sent again. */
  readonly commandTimeout: number;
  /** Milliseconds to connect; `start` waits no longer. Default 2 s. */
  readonly connectTimeout?: number;
  /**
   * How many replicas must have an eviction, a `set` or a lock before it counts, within half of `commandTimeout`. By `WAIT`,
   * on a connection of their own. Default 0.
   */
  readonly replicas?: number;
  /** Where `getOrLoad` looks first. With `'replica'` it may find what was evicted a moment ago. Default `'primary'`. */
  readonly readFrom?: ReadFrom;
  readonly logger: StampedeLogger;
}

/** Stands for all followers that can't be woken. */
const NOBODY = '*';

/**
 * The store on Redis: each step of the story is one script. A command whose reply was lost is sent again with the same
 * token, which each script takes for the same request; but a reply that is only late is waited for.
 */
export class RedisStore implements Store {
  readonly process = randomBytes(8).toString('hex');
  readonly #options: Required<RedisStoreOptions>;
  readonly #connection: Connection;
  /** For what replicas must confirm. */
  readonly #writes: Connection | undefined;
  readonly #confirmed: ConfirmedWrites;
  readonly #replicas: Connection | undefined;
  readonly #replicaReads: ReplicaReads;
  #names: KeyNames | undefined;
  #subscription: Subscription | undefined;
  #listening: Promise<void> | undefined;
  #wake: (token: string | undefined) => void = () => {};
  #changes: ChangeListener | undefined;
  #closed = false;

  /** @throws InvalidOptionError when `connection` can't be connected by, and for the others that it knows to be wrong */
  constructor({ connectTimeout = DEFAULTS.connectTimeout, replicas, readFrom, ...options }: RedisStoreOptions) {
    const resolved = {
      connectTimeout,
      replicas: resolveReplicas(replicas),
      readFrom: resolveReadFrom(readFrom),
      ...options,
    };
    this.#options = resolved;
    this.#connection = new Connection(resolved);
    const half = Math.max(1, Math.floor(resolved.commandTimeout / 2));
    const connection = () => this.#connection.pattern;
    this.#confirmed = new ConfirmedWrites(resolved.replicas, half);
    this.#writes = resolved.replicas > 0 ? new Connection({ ...resolved, connection }) : undefined;
    this.#replicaReads = new ReplicaReads(half);
    this.#replicas =
      resolved.readFrom === 'replica'
        ? new Connection({ ...resolved, connection, duplicate: duplicateForReplicaReads })
        : undefined;
  }

  /**
   * Begins to connect, and goes on in the background for as long as it takes.
   *
   * @throws when Redis isn't ready within `connectTimeout`; InvalidOptionError when the user's function returns nonsense, or
   * reads are to go to replicas that nobody knows of
   */
  async start(): Promise<void> {
    if (this.#closed) throw new CacheClosedError();
    this.#listening ??= this.#listen();
    try {
      // Of replicas nobody needs to wait for a connection.
      await Promise.all([this.#connection.open(), this.#writes?.open(), this.#replicas?.begin()]);
      await this.#checkRights();
      await this.#untilListening();
    } catch (error) {
      throw this.#isDenial(error) ? new StoreDeniedError(error, this.#mend()) : error;
    }
  }

  /** On a Cluster, the primary that holds the key. */
  partOf(key: string): string {
    const client = this.#connection.ready;
    return client && isCluster(client) ? (nodesOf(client, this.#namesOfKeys().value(key))[0] ?? '') : '';
  }

  read(keys: readonly string[], withTime = false, mayLag = false): Promise<ReadReply> {
    const run = (client: Client, names: KeyNames) =>
      read(
        client,
        keys.map((key) => names.value(key)),
        withTime,
      );
    const replicas = mayLag ? this.#replicas?.ready : undefined;
    const [first] = keys;
    if (!replicas || first === undefined) return this.#send(run);
    const names = this.#namesOfKeys();
    return this.#replicaReads
      .read(replicas, names.value(first), () => run(replicas, names))
      .then((found) => found ?? this.#send(run));
  }

  lead(request: LeadRequest): Promise<LeadReply> {
    const deadline = this.#deadline();
    const { key, unreadable } = request;
    return unreadable
      ? this.#fingerprint(key, unreadable, deadline).then((sha) => this.#lead(request, deadline, sha))
      : this.#lead(request, deadline);
  }

  /** @param unreadable the fingerprint of an entry that counts as missing */
  #lead(request: LeadRequest, deadline: number, unreadable?: string): Promise<LeadReply> {
    const run = (client: Client, names: KeyNames) => {
      const follower = this.#subscription?.active ? this.process : NOBODY;
      return lead(client, names, { request, follower, unreadable });
    };
    return request.kind === 'lock' && this.#writes
      ? this.#confirm(this.#writes, request.key, deadline, run, ({ is }) => is === 'leading')
      : this.#send(run, deadline);
  }

  async leaseLeft(key: string): Promise<number> {
    return Math.max(0, await this.#send((client, names) => client.pttl(names.cache(key).lock)));
  }

  /** What was taken on the connection for confirmed writes is also given back there: its order is that of the calls. */
  end(request: EndRequest): Promise<EndReply> {
    let sentAt: number | undefined;
    const run = (client: Client, names: KeyNames) => {
      const sentFor = sentAt === undefined ? undefined : systemClock.now() - sentAt;
      sentAt ??= systemClock.now();
      return end(client, names, request, sentFor);
    };
    const { kind, key, claimed, entry } = request;
    if (!this.#writes || !(kind === 'lock' || claimed)) return this.#send(run);
    return entry
      ? this.#confirm(this.#writes, key, this.#deadline(), run, ({ is }) => is === 'held')
      : this.#send(run, this.#deadline(), this.#writes);
  }

  renew(request: RenewRequest): Promise<RenewReply> {
    return this.#send((client, names) => renew(client, names, request));
  }

  replace(request: ReplaceRequest): Promise<void> {
    // Of a claim only what ends it counts.
    const isConfirmed = this.#writes !== undefined && typeof request.by === 'string';
    const run = (client: Client, names: KeyNames) => replace(client, names, request, isConfirmed);
    const deadline = this.#deadline();
    return this.#writes && isConfirmed
      ? this.#confirm(this.#writes, request.key, deadline, run, () => true)
      : this.#send(run, deadline, this.#writes);
  }

  onWake(wake: (token: string | undefined) => void): void {
    this.#wake = wake;
  }

  onChange(listener: ChangeListener): void {
    this.#changes = listener;
  }

  /**
   * As Node's `unref`: its connections alone don't keep the process running. Who waits for a reply has to: by a deadline, as
   * the cache has one for each command.
   */
  unref(): void {
    for (const connection of [this.#connection, this.#writes, this.#replicas]) connection?.unref();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#wake = () => {};
    const closing = this.#subscription?.close();
    await Promise.all([this.#connection, this.#writes, this.#replicas].map((connection) => connection?.close()));
    await closing;
  }

  /** So that the first to wait are woken. Without the right to listen, or on a slow network, they poll. */
  async #untilListening(): Promise<void> {
    await this.#listening;
    const giveUp = new AbortController();
    const { signal } = giveUp;
    await Promise.race([
      this.#subscription?.decided,
      sleep(this.#options.connectTimeout, undefined, { signal }).catch(() => {}),
    ]);
    giveUp.abort();
  }

  /** Does once what every load does, with a key of its own: better now than at the first request. */
  async #checkRights(): Promise<void> {
    const key = `rights of ${this.process}`;
    const lock = { kind: 'cache', key, token: `${this.process}#0`, lease: 1_000 } as const;
    try {
      await this.read([key]);
      await this.lead({ ...lock, follow: false });
      await this.end(lock);
      await this.#checkReplicas();
    } catch (error) {
      // Whatever else is wrong with it (it is full, or loading), it may be right again in a moment.
      if (this.#isDenial(error)) throw error;
    }
  }

  async #checkReplicas(): Promise<void> {
    const { replicas } = this.#options;
    if (!this.#writes) return;
    const fewest = await this.#send((client) => this.#confirmed.fewestReplicas(client), this.#deadline(), this.#writes);
    if (fewest >= replicas) return;
    this.#options.logger.warn(
      `'replicas' is ${replicas}, but a primary has only ${fewest} right now. Until it has more, evictions that it takes ` +
        'count as failed, and no lock is given.',
    );
  }

  #isDenial(error: unknown): boolean {
    return /\b(WRONGPASS|NOAUTH|NOPERM)\b|invalid password|can't (run|access)/i.test(messageOf(error));
  }

  #mend(): string {
    const prefix = this.#connection.keyPrefix + this.#options.namespace;
    const rights = `${rightsFor(this.#options)} ~${prefix}:* &${prefix}:*`;
    return `Check the user and password in 'connection', and its rights: ${rights}`;
  }

  async #listen(): Promise<void> {
    if (!(await this.#connection.whenReady(Infinity))) return;
    this.#subscription = new Subscription({
      ...this.#options,
      connection: this.#connection,
      names: this.#namesOfKeys(),
      process: this.process,
      wake: (token) => this.#wake(token),
      changes: this.#changes,
    });
  }

  #namesOfKeys(): KeyNames {
    this.#names ??= new KeyNames(this.#connection.keyPrefix + this.#options.namespace);
    return this.#names;
  }

  #deadline(): number {
    return systemClock.now() + this.#options.commandTimeout;
  }

  #send<T>(
    run: (client: Client, names: KeyNames) => Promise<T>,
    deadline = this.#deadline(),
    connection = this.#connection,
  ): Promise<T> {
    return send(connection, deadline, (client) => run(client, this.#namesOfKeys()));
  }

  /** Sends what replicas must confirm, if its reply says that it wrote. */
  #confirm<T>(
    writes: Connection,
    key: string,
    deadline: number,
    run: (client: Client, names: KeyNames) => Promise<T>,
    wrote: (reply: T) => boolean,
  ): Promise<T> {
    return this.#send(
      (client, names) => this.#confirmed.run(client, names.value(key), (node) => run(node, names), wrote),
      deadline,
      writes,
    );
  }

  /** SHA-1 of the bytes that read as this text. */
  async #fingerprint(key: string, text: string, deadline: number): Promise<string> {
    // Bytes that aren't UTF-8 read as U+FFFD, so only the server still knows which they were.
    const bytes = text.includes('\uFFFD')
      ? await this.#send((client, names) => client.getBuffer(names.value(key)), deadline)
      : Buffer.from(text);
    return sha1(bytes?.toString() === text ? bytes : Buffer.from(text));
  }
}

function sha1(bytes: Buffer): string {
  return createHash('sha1').update(bytes).digest('hex');
}
