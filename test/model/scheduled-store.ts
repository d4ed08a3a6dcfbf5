/**
 * A store whose every command runs when the scheduler says so, and whose replies and wake-ups come when the scheduler says so.
 * As on one connection, commands run in the order in which they were sent, and replies come in that order; but for those
 * that go wrong.
 */
import type { Scheduler } from 'fast-check';
import { parseEntry } from '../../lib/core/entry.js';
import type { StoreCommand } from '../../lib/core/events.js';
import type {
  EndReply,
  EndRequest,
  LeadReply,
  LeadRequest,
  ReadReply,
  RenewReply,
  RenewRequest,
  ReplaceRequest,
  Store,
} from '../../lib/core/store.js';
import type { TestClock } from '../support/clock.js';
import type { History, Origin } from './history.js';

/** `late`: it runs, and is answered, at any time, whatever was sent after it. */
export type Fault = 'request lost' | 'reply lost' | 'late';

export class ScheduledStore implements Store {
  /** What goes wrong with the next commands, one after the other. */
  readonly faults: Fault[] = [];
  /** How many of the next wake-ups are lost. */
  wakeUpsToLose = 0;
  crashed = false;
  /** The lock that the last reply spoke of that said `leading`, by key. */
  readonly led = new Map<string, string>();
  readonly #store: Store;
  readonly #scheduler: Scheduler;
  readonly #history: History;
  readonly #clock: TestClock;
  readonly #index: number;
  #lastRun: Promise<unknown> = Promise.resolve();
  #lastReply: Promise<unknown> = Promise.resolve();
  #wake: (token: string | undefined) => void = () => {};

  constructor(store: Store, index: number, scheduler: Scheduler, history: History, clock: TestClock) {
    this.#store = store;
    this.#index = index;
    this.#scheduler = scheduler;
    this.#history = history;
    this.#clock = clock;
  }

  get process(): string {
    return this.#store.process;
  }

  async start(): Promise<void> {}

  async close(): Promise<void> {}

  read(keys: readonly string[], withTime?: boolean): Promise<ReadReply> {
    return this.#send('read', keys.join(), () => this.#store.read(keys, withTime));
  }

  async lead(request: LeadRequest): Promise<LeadReply> {
    const { key, token, lease } = request;
    const reply = await this.#send('lead', `${key} ${token}`, async () => {
      const ran = await this.#store.lead(request);
      if (ran.is === 'leading') this.#history.took(token, this.#clock.now() + lease);
      return ran;
    });
    if (reply.is === 'leading') this.led.set(key, token);
    return reply;
  }

  end(request: EndRequest): Promise<EndReply> {
    const { key, token, entry } = request;
    return this.#send('end', `${key} ${token}${entry ? ' with entry' : ''}`, async () => {
      const ran = await this.#store.end(request);
      if (ran.is === 'held' && entry) this.#history.stored(key, token, originOf(entry.text));
      return ran;
    });
  }

  renew(request: RenewRequest): Promise<RenewReply> {
    const { key, token, lease } = request;
    return this.#send('renew', `${key} ${token}`, async () => {
      const ran = await this.#store.renew(request);
      if (ran === 'held') this.#history.took(token, this.#clock.now() + lease);
      return ran;
    });
  }

  replace(request: ReplaceRequest): Promise<void> {
    const { key, by } = request;
    const claim = typeof by === 'object' ? by : undefined;
    return this.#send('replace', `${key} by ${claim ? `claim ${claim.claim}` : by}`, async () => {
      await this.#store.replace(request);
      this.#history.replaced(key, claim?.claim);
      if (claim) this.#history.took(claim.claim, this.#clock.now() + claim.lease);
    });
  }

  onWake(wake: (token: string | undefined) => void): void {
    this.#wake = wake;
    this.#store.onWake((token) => {
      if (this.wakeUpsToLose > 0) this.wakeUpsToLose -= 1;
      else
        void this.#scheduler
          .schedule(Promise.resolve(), `${this.#index}: woken by ${token}`)
          .then(() => this.wake(token));
    });
  }

  wake(token: string | undefined): void {
    if (this.crashed) return;
    this.#history.step(`${this.#index}: woken by ${token}`);
    this.#wake(token);
  }

  async #send<T>(command: StoreCommand, what: string, run: () => Promise<T>): Promise<T> {
    if (this.crashed) return never();
    const label = `${this.#index}: ${command} ${what}`;
    const fault = this.faults.shift();
    this.#history.step(`${label} is sent${fault ? ` (${fault})` : ''}`);
    const inOrder = fault !== 'late';
    const running = (inOrder ? this.#lastRun : Promise.resolve()).then(async () => {
      await this.#scheduler.schedule(Promise.resolve(), `${label} runs`);
      if (fault === 'request lost') return undefined;
      const at = this.#history.step(`${label} runs`);
      const reply = await run();
      this.#history.log.push(`${at} ... ${JSON.stringify(reply)}`);
      return { reply };
    });
    if (inOrder) this.#lastRun = running;
    const ran = await running;
    if (!ran || fault === 'reply lost') return never();
    const replying = (inOrder ? this.#lastReply : Promise.resolve()).then(() =>
      this.#scheduler.schedule(Promise.resolve(), `${label} is answered`),
    );
    if (inOrder) this.#lastReply = replying;
    await replying;
    if (this.crashed) return never();
    this.#history.step(`${label} is answered`);
    return ran.reply;
  }
}

function originOf(text: string): Origin {
  return JSON.parse(parseEntry(text)?.payload ?? '') as Origin;
}

function never(): Promise<never> {
  return new Promise(() => {});
}
