import type { Clock } from '../core/clock.js';
import { InvalidOptionError } from '../core/errors.js';
import type { StoreCommand } from '../core/events.js';
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

/**
 * What may go wrong: it is refused at once; it never gets there; it runs, but no reply comes; it runs so many milliseconds
 * later; it runs at once, but its reply comes so much later.
 */
export type Fault =
  | 'rejects'
  | 'request lost'
  | 'reply lost'
  | { readonly runsAfter: number }
  | { readonly repliesAfter: number };

const COMMANDS: readonly StoreCommand[] = ['read', 'lead', 'leaseLeft', 'end', 'renew', 'replace'];

/**
 * A store whose commands and wake-ups go wrong when the test says so. Everything else is the store's behind it.
 *
 * Commands are `read` (of entries), `lead` (recheck, and take the lock), `leaseLeft` (of a lock that is waited for), `renew`
 * (the lease), `end` (store the value and release), `replace` (what `evict`, `expire` and `set` begin with).
 *
 * @example
 * store.fails('end', 'reply lost');
 * store.isAway();
 * store.works();
 */
export class FaultyStore implements Store {
  /** Every command that was sent, in order. */
  readonly sent: { readonly command: StoreCommand; readonly key: string }[] = [];
  /** Every lock that was asked for, as `MemoryServer` names them. */
  readonly locks = new Set<string>();
  /** It has no subscription: no wake-ups come, and replies say so. */
  deaf = false;
  /** Wake-ups are lost, though replies promise them. */
  losesWakeUps = false;
  /** The process was killed: nothing is sent and nothing comes. */
  crashed = false;
  /** Who listens to changes, a near cache: its subscription is lost by `store.changes?.deaf()`. */
  changes: ChangeListener | undefined;
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #faults = new Map<string, Fault>();
  readonly #unanswered = new Set<() => void>();
  #wake: (token: string | undefined) => void = () => {};

  /** @param clock whose time delays are; the cache's own, so that its deadlines go by it as well */
  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  get process(): string {
    return this.#store.process;
  }

  /**
   * From now on, until `works`, every such command goes wrong like this.
   *
   * @throws InvalidOptionError, as the others do, for a command or a fault that there is not
   */
  fails(command: StoreCommand, fault: Fault): void {
    checkCommands([command]);
    checkFault(fault);
    this.#faults.set(command, fault);
  }

  /** The same for the commands of one key. */
  failsFor(command: StoreCommand, key: string, fault: Fault): void {
    checkCommands([command]);
    checkFault(fault);
    this.#faults.set(`${command} ${key}`, fault);
  }

  /** All commands go wrong like this. Default: none arrives, so that each call waits for its `commandTimeout`. */
  isAway(fault: Fault = 'request lost'): void {
    for (const command of COMMANDS) this.fails(command, fault);
  }

  /** These commands, or all, do what they should again. The cache may have left the store alone for half a second. */
  works(...commands: StoreCommand[]): void {
    checkCommands(commands);
    if (commands.length === 0) this.#faults.clear();
    for (const command of commands) this.#faults.delete(command);
  }

  /** How many of these commands were sent. */
  count(...commands: StoreCommand[]): number {
    checkCommands(commands);
    return this.sent.filter(({ command }) => commands.length === 0 || commands.includes(command)).length;
  }

  /** Delivers a wake-up that the test makes up; `undefined`: some may have been missed. */
  wake(token: string | undefined): void {
    this.#wake(token);
  }

  start(): Promise<void> {
    return this.#store.start();
  }

  read(keys: readonly string[], withTime?: boolean, mayLag?: boolean): Promise<ReadReply> {
    return this.#run('read', keys.join(' '), () => this.#store.read(keys, withTime, mayLag));
  }

  partOf(key: string): string {
    return this.#store.partOf?.(key) ?? '';
  }

  async lead(request: LeadRequest): Promise<LeadReply> {
    this.locks.add(`${request.kind} ${request.key}`);
    return this.#run('lead', request.key, async () => {
      // Who can't be woken is registered as such when the command is carried out, whatever is so when the reply comes.
      const { deaf } = this;
      const reply = await this.#store.lead(request);
      return reply.is === 'waiting' && deaf ? { ...reply, wakes: false } : reply;
    });
  }

  leaseLeft(key: string): Promise<number> {
    return this.#run('leaseLeft', key, () => this.#store.leaseLeft(key));
  }

  end(request: EndRequest): Promise<EndReply> {
    return this.#run('end', request.key, () => this.#store.end(request));
  }

  renew(request: RenewRequest): Promise<RenewReply> {
    return this.#run('renew', request.key, () => this.#store.renew(request));
  }

  replace(request: ReplaceRequest): Promise<void> {
    this.locks.add(`cache ${request.key}`);
    return this.#run('replace', request.key, () => this.#store.replace(request));
  }

  onWake(wake: (token: string | undefined) => void): void {
    this.#wake = wake;
    this.#store.onWake((token) => {
      if (!this.deaf && !this.losesWakeUps && !this.crashed) wake(token);
    });
  }

  onChange(listener: ChangeListener): void {
    this.changes = listener;
    this.#store.onChange?.({
      changed: (key) => !this.crashed && !this.losesWakeUps && listener.changed(key),
      listens: (trusted) => listener.listens(trusted),
      deaf: () => listener.deaf(),
    });
  }

  /** As a client does that disconnects: what has no reply yet rejects. */
  close(): Promise<void> {
    for (const reject of this.#unanswered) reject();
    return this.#store.close();
  }

  async #run<T>(command: StoreCommand, key: string, run: () => Promise<T>): Promise<T> {
    this.sent.push({ command, key });
    const fault = this.crashed ? 'request lost' : (this.#faults.get(`${command} ${key}`) ?? this.#faults.get(command));
    if (fault === 'rejects') throw new Error(`${command} was refused`);
    if (fault === 'request lost') return this.#wait(Infinity);
    if (typeof fault === 'object' && 'runsAfter' in fault) await this.#wait(fault.runsAfter);
    const reply = await run();
    if (fault === 'reply lost' || this.crashed) return this.#wait(Infinity);
    if (typeof fault === 'object' && 'repliesAfter' in fault) await this.#wait(fault.repliesAfter);
    return reply;
  }

  /** Resolves so many milliseconds later; rejects when the store is closed first. */
  #wait(milliseconds: number): Promise<never> {
    return new Promise<never>((resolve, reject) => {
      const settle = (then: () => void) => () => {
        timer?.clear();
        this.#unanswered.delete(disconnect);
        then();
      };
      const disconnect = settle(() => reject(new Error('disconnected')));
      const timer =
        milliseconds === Infinity
          ? undefined
          : this.#clock.after(
              milliseconds,
              settle(() => resolve(undefined as never)),
            );
      this.#unanswered.add(disconnect);
    });
  }
}

function checkCommands(commands: readonly unknown[]): void {
  for (const command of commands) {
    if ((COMMANDS as readonly unknown[]).includes(command)) continue;
    throw new InvalidOptionError('command', command, `one of ${COMMANDS.map((each) => `'${each}'`).join(', ')}`);
  }
}

function checkFault(fault: unknown): void {
  if (fault === 'rejects' || fault === 'request lost' || fault === 'reply lost') return;
  const { runsAfter, repliesAfter } = Object(fault) as { runsAfter?: unknown; repliesAfter?: unknown };
  const delay = runsAfter ?? repliesAfter;
  if (typeof delay === 'number' && delay >= 0) return;
  throw new InvalidOptionError(
    'fault',
    fault,
    "'rejects', 'request lost', 'reply lost', { runsAfter: milliseconds } or { repliesAfter: milliseconds }",
  );
}
