import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../core/clock.js';
import { CacheClosedError, StoreDeniedError, StoreReplyError } from '../core/errors.js';
import type { StampedeLogger } from '../core/logger.js';
import { messageOf } from '../core/message-of.js';
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
import { type Client, isReplyError } from './client.js';
import { Connection } from './connection.js';
import type { ConnectionOption } from './connection-source.js';
import { end } from './end.js';
import { KeyNames } from './key-names.js';
import { lead } from './lead.js';
import { OneWrite } from './one-write.js';
import { read } from './read.js';
import { renew } from './renew.js';
import { replace } from './replace.js';
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
  readonly logger: StampedeLogger;
}

/** The commands that we, our scripts and ioredis send, as ACL rules. */
const RIGHTS =
  '+@connection +info +time +get +mget +set +del +append +pttl +pexpire +exists +eval +evalsha +publish +subscribe ' +
  '+unsubscribe +cluster|slots +cluster|nodes +cluster|info';

/** Stands for all followers that can't be woken. */
const NOBODY = '*';

/** Milliseconds before a command is sent again: the first time, and at most. */
const FIRST_PAUSE = 10;
const LONGEST_PAUSE = 100;

/**
 * The store on Redis: each step of the story is one script. A command whose reply was lost is sent again with the same
 * token, which each script takes for the same request; but a reply that is only late is waited for.
 */
export class RedisStore implements Store {
  readonly process = randomBytes(8).toString('hex');
  readonly #options: Required<RedisStoreOptions>;
  readonly #connection: Connection;
  readonly #oneWrite = new OneWrite();
  #names: KeyNames | undefined;
  #subscription: Subscription | undefined;
  #listening: Promise<void> | undefined;
  #wake: (token: string | undefined) => void = () => {};
  #changes: ChangeListener | undefined;
  #closed = false;

  /** @throws InvalidOptionError when `connection` can't be connected by */
  constructor({ connectTimeout = 2_000, ...options }: RedisStoreOptions) {
    this.#options = { connectTimeout, ...options };
    this.#connection = new Connection(this.#options);
  }

  /**
   * Begins to connect, and goes on in the background for as long as it takes.
   *
   * @throws when Redis isn't ready within `connectTimeout`; InvalidOptionError when the user's function returns nonsense
   */
  async start(): Promise<void> {
    if (this.#closed) throw new CacheClosedError();
    this.#listening ??= this.#listen();
    try {
      await this.#connection.open();
      await this.#checkRights();
      await this.#untilListening();
    } catch (error) {
      throw this.#isDenial(error) ? new StoreDeniedError(error, this.#mend()) : error;
    }
  }

  read(keys: readonly string[], withTime = false): Promise<ReadReply> {
    return this.#send((client, names) =>
      read(
        client,
        keys.map((key) => names.value(key)),
        withTime,
      ),
    );
  }

  async lead(request: LeadRequest): Promise<LeadReply> {
    const deadline = this.#deadline();
    const unreadable = request.unreadable && (await this.#fingerprint(request.key, request.unreadable, deadline));
    return this.#send((client, names) => {
      const follower = this.#subscription?.active ? this.process : NOBODY;
      return lead(client, names, { request, follower, unreadable });
    }, deadline);
  }

  async leaseLeft(key: string): Promise<number> {
    return Math.max(0, await this.#send((client, names) => client.pttl(names.cache(key).lock)));
  }

  end(request: EndRequest): Promise<EndReply> {
    return this.#send((client, names) => end(client, names, request));
  }

  renew(request: RenewRequest): Promise<RenewReply> {
    return this.#send((client, names) => renew(client, names, request));
  }

  replace(request: ReplaceRequest): Promise<void> {
    return this.#send((client, names) => replace(client, names, request));
  }

  onWake(wake: (token: string | undefined) => void): void {
    this.#wake = wake;
  }

  onChange(listener: ChangeListener): void {
    this.#changes = listener;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#wake = () => {};
    const closing = this.#subscription?.close();
    await this.#connection.close();
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
    } catch (error) {
      // Whatever else is wrong with it (it is full, or loading), it may be right again in a moment.
      if (this.#isDenial(error)) throw error;
    }
  }

  #isDenial(error: unknown): boolean {
    return /\b(WRONGPASS|NOAUTH|NOPERM)\b|invalid password|can't (run|access)/i.test(messageOf(error));
  }

  #mend(): string {
    const prefix = this.#connection.keyPrefix + this.#options.namespace;
    return `Check the user and password in 'connection', and its rights: ${RIGHTS} ~${prefix}:* &${prefix}:*`;
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

  /**
   * Sends a command, and sends it again while there is no telling whether it arrived and its deadline has not passed. In the
   * order of the calls, as long as the connection holds: who releases a lock relies on it.
   */
  async #send<T>(run: (client: Client, names: KeyNames) => Promise<T>, deadline = this.#deadline()): Promise<T> {
    for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
      const client = this.#connection.ready ?? (await this.#whenReady(deadline));
      try {
        this.#oneWrite.hold(client);
        return await run(client, this.#namesOfKeys());
      } catch (error) {
        if (!mayBeSentAgain(error)) throw isReplyError(error) ? new StoreReplyError(error) : error;
        if (systemClock.now() + pause >= deadline) throw this.#connection.explain('No reply from Redis', error);
      }
      await sleep(pause);
    }
  }

  async #whenReady(deadline: number): Promise<Client> {
    await this.#connection.whenReady(this.#connection.patience(deadline - systemClock.now()));
    const client = this.#connection.ready;
    if (!client || systemClock.now() >= deadline) throw this.#connection.explain('No connection to Redis');
    return client;
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

/** Nothing was answered, or the answer was that nothing was done because the server is just changing. */
function mayBeSentAgain(error: unknown): boolean {
  if (error instanceof CacheClosedError) return false;
  return !isReplyError(error) || /^-?(LOADING|CLUSTERDOWN|TRYAGAIN|MASTERDOWN)|READONLY/.test(error.message);
}

function sha1(bytes: Buffer): string {
  return createHash('sha1').update(bytes).digest('hex');
}
