import type { Clock } from './clock.js';
import { CommandTimeoutError } from './errors.js';
import type { Events, StoreCommand } from './events.js';
import type {
  EndReply,
  EndRequest,
  LeadReply,
  LeadRequest,
  RenewReply,
  RenewRequest,
  ReplaceRequest,
  Store,
} from './store.js';

type Commands = Pick<Store, 'process' | StoreCommand>;

/**
 * The store as the story sees it: every command settles within `commandTimeout`, whatever the client does, and no lock is
 * left behind by one whose reply didn't come.
 */
export class GuardedStore implements Commands {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #events: Events;
  readonly #commandTimeout: number;

  constructor(store: Store, clock: Clock, events: Events, commandTimeout: number) {
    this.#store = store;
    this.#clock = clock;
    this.#events = events;
    this.#commandTimeout = commandTimeout;
  }

  get process(): string {
    return this.#store.process;
  }

  read(keys: readonly string[]): Promise<readonly (string | undefined | Error)[]> {
    return this.#inTime('read', this.#store.read(keys));
  }

  /**
   * A request that isn't known to have failed may have taken the lock, or may still take it. The release follows it on the
   * same connection, so it runs right after; should a reply come in the end that says it led, it is released once more,
   * since then the first release may have gone another way.
   */
  async lead(request: LeadRequest): Promise<LeadReply> {
    const reply = this.#store.lead(request);
    try {
      return await this.#inTime('lead', reply);
    } catch (error) {
      this.#release(request);
      reply.then(
        (late) => late.is === 'leading' && this.#release(request),
        () => {},
      );
      throw error;
    }
  }

  end(request: EndRequest): Promise<EndReply> {
    return this.#inTime('end', this.#store.end(request));
  }

  renew(request: RenewRequest): Promise<RenewReply> {
    return this.#inTime('renew', this.#store.renew(request));
  }

  /** A claim takes the lock as `lead` does, and is released like it. */
  async replace(request: ReplaceRequest): Promise<void> {
    const reply = this.#store.replace(request);
    try {
      await this.#inTime('replace', reply);
    } catch (error) {
      if (typeof request.by === 'object') {
        const claim = { kind: 'cache', key: request.key, token: request.by.claim } as const;
        this.#release(claim);
        reply.then(
          () => this.#release(claim),
          () => {},
        );
      }
      throw error;
    }
  }

  #release({ kind, key, token }: EndRequest): void {
    this.#store.end({ kind, key, token }).catch(() => {});
  }

  #inTime<T>(command: StoreCommand, reply: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const fail = (error: unknown) => {
        if (this.#events.observed) this.#events.emit({ type: 'store-error', command, error });
        reject(error);
      };
      const timer = this.#clock.after(this.#commandTimeout, () =>
        fail(new CommandTimeoutError(command, this.#commandTimeout)),
      );
      reply.then(
        (value) => {
          timer.clear();
          resolve(value);
        },
        (error) => {
          timer.clear();
          fail(error);
        },
      );
    });
  }
}
