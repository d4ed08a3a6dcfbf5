import type { Redis } from 'ioredis';
import { systemClock } from '../core/clock.js';
import { CacheClosedError, InvalidOptionError } from '../core/errors.js';
import { messageOf } from '../core/message-of.js';
import { type Client, isCluster } from './client.js';
import {
  type ClientDeadlines,
  DISCONNECT_TIMEOUT,
  duplicateForCommands,
  duplicateForListening,
  longestSilence,
  retryDelay,
} from './client-settings.js';
import { type ConnectionOption, checkConnectionOption, resolveConnection } from './connection-source.js';
import { batchScripts, sendBatch } from './script.js';
import { endSilent } from './silence.js';
import { unref } from './unref.js';

export interface ConnectionOptions extends ClientDeadlines {
  readonly connection: ConnectionOption;
  /** Makes our client of what the user gave. Default: the one for commands. */
  readonly duplicate?: (pattern: Client, deadlines: ClientDeadlines) => Client;
}

/** Our client for commands: gets it, keeps it, says when it is there. What is wrong with it, commands tell: `explain`. */
export class Connection {
  /** Called when the client, which was ready, has lost its connection. */
  onLost: () => void = () => {};
  readonly #options: ConnectionOptions;
  /** Those who wait for the client to be ready. */
  readonly #waiting = new Set<(ready: boolean) => void>();
  #opening: Promise<void> | undefined;
  #client: Client | undefined;
  #listener: Redis | undefined;
  #keepsProcess = true;
  #keyPrefix = '';
  /** `undefined` while it is ready. */
  #downSince: number | undefined = systemClock.now();
  /** What went wrong since it was last ready. */
  #trouble: unknown;
  #closed = false;
  #resolvePattern: (pattern: Client) => void = () => {};
  /** What the user gave, once it is known: further connections are duplicates of the same. */
  readonly pattern = new Promise<Client>((resolve) => {
    this.#resolvePattern = resolve;
  });

  /** @throws InvalidOptionError when `connection` can't be connected by */
  constructor(options: ConnectionOptions) {
    checkConnectionOption(options.connection);
    this.#options = options;
  }

  /** The client, if it can be used right now. */
  get ready(): Client | undefined {
    return this.#downSince === undefined ? this.#client : undefined;
  }

  /** What the user's client puts before every key. Known as soon as there is a client. */
  get keyPrefix(): string {
    return this.#keyPrefix;
  }

  /**
   * Begins to connect, and goes on for as long as it takes. Resolves as soon as there is a client.
   *
   * @throws InvalidOptionError when an option can't be used, which no waiting makes right
   */
  begin(): Promise<void> {
    this.#opening ??= this.#open();
    return this.#opening;
  }

  /**
   * Begins to connect, and goes on for as long as it takes.
   *
   * @throws when it isn't ready within `connectTimeout`
   */
  async open(): Promise<void> {
    const { connectTimeout } = this.#options;
    const unusable = this.begin().then(() => new Promise<never>(() => {}));
    const ready = await Promise.race([this.whenReady(connectTimeout), unusable]);
    if (!ready) throw this.explain(`No connection to Redis within ${connectTimeout} ms`);
  }

  /**
   * Waits for the client to be ready.
   *
   * @param within milliseconds; `Infinity` waits until it is closed
   * @param keepsProcess whether the process goes on for it
   * @returns whether it is
   */
  async whenReady(within: number, keepsProcess = true): Promise<boolean> {
    if (this.ready || this.#closed) return this.ready !== undefined;
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | undefined;
      const done = (ready: boolean) => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        resolve(ready);
      };
      if (within < Infinity) timer = setTimeout(() => done(false), Math.max(0, within));
      if (!keepsProcess) timer?.unref();
      this.#waiting.add(done);
    });
  }

  /** How long to wait for the client: less when it has been away for long, since then it isn't likely to come now. */
  patience(timeLeft: number): number {
    const { commandTimeout } = this.#options;
    const awayFor = systemClock.now() - (this.#downSince ?? systemClock.now());
    return Math.min(timeLeft, commandTimeout - awayFor);
  }

  /** A new client that listens and has yet to connect; whoever asked for it closes it. */
  duplicateForListening(): Redis | undefined {
    this.#listener = this.#client && duplicateForListening(this.#client, this.#options);
    if (this.#listener && !this.#keepsProcess) unref(this.#listener);
    return this.#listener;
  }

  /** Whether the process goes on for its sockets. */
  get keepsProcess(): boolean {
    return this.#keepsProcess;
  }

  /** As Node's `unref`, for all connections from here, also those to come. */
  unref(): void {
    if (!this.#keepsProcess) return;
    this.#keepsProcess = false;
    if (this.#client) unref(this.#client);
    if (this.#listener) unref(this.#listener);
  }

  /** An error that says what didn't work, and why as far as is known. */
  explain(what: string, cause = this.#trouble): Error {
    if (this.#closed) return new CacheClosedError();
    return new Error(cause ? `${what}: ${messageOf(cause)}` : what, { cause });
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#downSince ??= systemClock.now();
    for (const done of [...this.#waiting]) done(false);
    if (this.#client) await disconnect(this.#client);
  }

  async #open(): Promise<void> {
    for (let attempt = 1; !this.#closed; attempt += 1) {
      try {
        const pattern = await resolveConnection(this.#options.connection);
        if (!this.#closed) this.#connect(pattern);
        return;
      } catch (error) {
        if (error instanceof InvalidOptionError) throw error;
        this.#trouble = error;
      }
      // The user's own function failed. Nothing can be ready, so this only waits, and ends at once on closing.
      await this.whenReady(retryDelay(attempt), this.#keepsProcess);
    }
  }

  #connect(pattern: Client): void {
    const { duplicate = duplicateForCommands } = this.#options;
    const client = duplicate(pattern, this.#options);
    this.#client = client;
    if (!isCluster(client)) batchScripts(client);
    endSilent(client, longestSilence(this.#options));
    if (!this.#keepsProcess) unref(client);
    this.#keyPrefix = pattern.options.keyPrefix ?? '';
    this.#resolvePattern(pattern);
    client.on('error', (error: unknown) => {
      this.#trouble = error;
    });
    client.on('ready', () => this.#onReady());
    client.on('close', () => this.#onClose());
  }

  #onReady(): void {
    if (this.#closed) return;
    this.#trouble = undefined;
    this.#downSince = undefined;
    for (const done of [...this.#waiting]) done(true);
  }

  #onClose(): void {
    if (this.#downSince !== undefined) return;
    this.#downSince = systemClock.now();
    this.onLost();
  }
}

/** Closes a client of ours; what was sent still goes out. */
async function disconnect(client: Client): Promise<void> {
  sendBatch(client);
  await new Promise<void>((resolve) => {
    // ioredis tells the end of a client only if there was something left to end.
    const timer = systemClock.after(DISCONNECT_TIMEOUT, resolve);
    client.once('end', () => {
      timer.clear();
      resolve();
    });
    client.disconnect();
  });
}
