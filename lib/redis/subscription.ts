import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { systemClock } from '../core/clock.js';
import type { StampedeLogger } from '../core/logger.js';
import type { ChangeListener } from '../core/store.js';
import { isReplyError } from './client.js';
import { retryDelay } from './client-settings.js';
import type { Connection } from './connection.js';
import { Heartbeat } from './heartbeat.js';
import { type KeyNames, keyOfNearMessage } from './key-names.js';

/** Published by ourselves to ourselves; no token looks like it. */
const SELF_TEST = 'self-test';
/** The same on the channel of near caches; no key is empty. */
const NEAR_TEST = '';

export interface SubscriptionOptions {
  readonly connection: Connection;
  readonly names: KeyNames;
  /** Whose channel to listen on. */
  readonly process: string;
  /** Milliseconds to connect, subscribe and hear oneself. */
  readonly connectTimeout: number;
  readonly logger: StampedeLogger;
  /** Called with a token whose lock has ended, or with `undefined` when messages may have been missed. */
  readonly wake: (token: string | undefined) => void;
  /** Told of changes, for a near cache, if there is one. */
  readonly changes: ChangeListener | undefined;
}

/**
 * This process's subscription. It is `active` only after the server has acknowledged it *and* a message to ourselves has
 * come back, which proves the right to publish as well as the way back. It lives no longer than the connection for commands,
 * so that both talk to the same server, whoever that is after a failover.
 */
export class Subscription {
  readonly #options: SubscriptionOptions;
  readonly #channel: string;
  readonly #closing = new AbortController();
  readonly #ended: Promise<void>;
  /** Resolves when it is known whether wake-ups come through, for the first time. */
  readonly decided: Promise<void>;
  #decide: () => void = () => {};
  #client: Redis | undefined;
  #active = false;
  #heardOurselves: () => void = () => {};
  #heardNear: () => void = () => {};
  #heartbeat: Heartbeat | undefined;
  #warned = false;
  #warnedOfNear = false;

  constructor(options: SubscriptionOptions) {
    this.#options = options;
    this.#channel = options.names.channel(options.process);
    options.connection.onLost = () => this.#drop();
    this.decided = new Promise((resolve) => {
      this.#decide = resolve;
    });
    this.#ended = this.#keepListening();
  }

  /** Whether wake-ups come through. */
  get active(): boolean {
    return this.#active;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#decide();
    this.#drop();
    await this.#ended;
  }

  async #keepListening(): Promise<void> {
    const { signal } = this.#closing;
    const { connection } = this.#options;
    for (let attempt = 0; await connection.whenReady(Infinity); attempt += 1) {
      if (signal.aborted) return;
      if (await this.#listen()) attempt = 0;
      await sleep(retryDelay(attempt + 1), undefined, { signal, ref: connection.keepsProcess }).catch(() => {});
    }
  }

  /** Listens until the connection ends; returns whether wake-ups came through. */
  async #listen(): Promise<boolean> {
    const client = this.#options.connection.duplicateForListening();
    if (!client) return false;
    this.#client = client;
    client.on('error', () => {});
    client.on('message', (channel: string, message: string) => this.#onMessage(channel, message));
    client.on('close', () => this.#deafen());
    const ended = new Promise<void>((resolve) => client.once('end', () => resolve()));
    const timer = systemClock.after(this.#options.connectTimeout, () => client.disconnect());
    const activated = await this.#activate(client, ended);
    timer.clear();
    this.#decide();
    await ended;
    this.#client = undefined;
    return activated;
  }

  async #activate(client: Redis, ended: Promise<void>): Promise<boolean> {
    try {
      await client.connect();
      await client.subscribe(this.#channel);
      await this.#testOurselves(ended);
      this.#active = client.status === 'ready';
    } catch (error) {
      // Without the right there is nothing to try again until something changes; the next connection will tell.
      if (isReplyError(error) && error.message.startsWith('NOPERM')) this.#warn(error);
      else client.disconnect();
    }
    if (!this.#active) return false;
    this.#warned = false;
    this.#options.wake(undefined);
    await this.#activateNear(client, ended);
    return true;
  }

  /** The near cache needs more: that it hears everything, and is told soon when it doesn't. */
  async #activateNear(client: Redis, ended: Promise<void>): Promise<void> {
    const { changes, names } = this.#options;
    if (!changes) return;
    const sentAt = systemClock.now();
    const heard = new Promise<void>((resolve) => {
      this.#heardNear = resolve;
    });
    try {
      await client.subscribe(names.nearChannel);
      await this.#test(names.nearChannel, NEAR_TEST, heard, ended);
    } catch (error) {
      if (isReplyError(error) && error.message.startsWith('NOPERM')) this.#warnOfNear(error);
      else client.disconnect();
      return;
    }
    if (client.status !== 'ready') return;
    this.#warnedOfNear = false;
    this.#heartbeat = new Heartbeat(client, (trusted) => changes.listens(trusted));
    this.#heartbeat.start(sentAt);
  }

  async #testOurselves(ended: Promise<void>): Promise<void> {
    const heard = new Promise<void>((resolve) => {
      this.#heardOurselves = resolve;
    });
    await this.#test(this.#channel, SELF_TEST, heard, ended);
  }

  async #test(channel: string, message: string, heard: Promise<void>, ended: Promise<void>): Promise<void> {
    const commands = this.#options.connection.ready;
    if (!commands) throw new Error('the connection for commands was lost');
    await Promise.race([commands.publish(channel, message).then(() => heard), ended]);
  }

  #onMessage(channel: string, message: string): void {
    if (channel === this.#channel) {
      if (message === SELF_TEST) this.#heardOurselves();
      else this.#options.wake(message);
    } else if (message === NEAR_TEST) {
      this.#heardNear();
    } else {
      this.#options.changes?.changed(keyOfNearMessage(message));
    }
  }

  #drop(): void {
    this.#deafen();
    this.#client?.disconnect();
  }

  #deafen(): void {
    const wasActive = this.#active;
    this.#active = false;
    this.#heartbeat?.stop();
    this.#heartbeat = undefined;
    this.#options.changes?.deaf();
    // Those who wait to be woken look, and poll from then on.
    if (wasActive && !this.#closing.signal.aborted) this.#options.wake(undefined);
  }

  #warnOfNear(error: Error): void {
    if (this.#warnedOfNear) return;
    this.#warnedOfNear = true;
    this.#options.logger.warn(
      `This Redis user may not use the channel of near caches, so 'near' is off. Grant the ACL rule ` +
        `'${this.#options.names.channelRule}', and SUBSCRIBE and PUBLISH. (${error.message})`,
    );
  }

  #warn(error: Error): void {
    if (this.#warned) return;
    this.#warned = true;
    this.#options.logger.warn(
      `This Redis user may not use our channels, so waiting for another process's load works by polling` +
        `${this.#options.changes ? " and 'near' is off" : ''}. Grant the ACL rule ` +
        `'${this.#options.names.channelRule}', and SUBSCRIBE and PUBLISH, for wake-ups. (${error.message})`,
    );
  }
}
