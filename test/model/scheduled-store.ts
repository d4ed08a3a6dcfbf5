/**
 * A store whose every command runs when the scheduler says so, and whose replies, wake-ups and messages of changes come when the
 * scheduler says so. As on one connection, commands run in the order in which they were sent, and replies come in that order;
 * but for those that go wrong. So do messages of changes, on a connection of their own.
 */
import type { Scheduler } from 'fast-check';
import { parseEntry } from '../../lib/core/entry.js';
import type { StoreCommand } from '../../lib/core/events.js';
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
} from '../../lib/core/store.js';
import type { TestClock } from '../support/clock.js';
import type { ChangeRecord, History, Origin } from './history.js';

/** What goes wrong with the next command of this kind. `late`: it runs long after, and is answered long after that, whatever was sent since. */
export interface Fault {
  readonly command: StoreCommand;
  readonly is: 'request lost' | 'reply lost' | 'late';
}

/** How often the scheduler has to pick what is late, each time. */
const LATE = 8;

/** The next of this kind takes its time: the scheduler has to pick it so many times more until it runs, and is answered. */
export interface Slowness {
  readonly what: StoreCommand | 'wake-up' | 'change';
  readonly run: number;
  readonly answer: number;
}

export class ScheduledStore implements Store {
  /** What goes wrong of what comes next. */
  readonly faults: Fault[] = [];
  /** What is slow of what comes next. */
  readonly slow: Slowness[] = [];
  /** Tokens whose end got lost, or was overtaken by what it should end. */
  readonly #astrayEnds = new Set<string>();
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
  #changes: ChangeListener | undefined;
  /** Messages of changes that are on their way. */
  readonly #untold = new Set<ChangeRecord>();
  #lastChange: Promise<unknown> = Promise.resolve();
  #isDeaf = false;

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

  /** Whether only the lease can end this lock: its process died, or its release went astray. */
  leavesLocked(token: string): boolean {
    return this.#astrayEnds.has(token) || (this.crashed && token.startsWith(`${this.process}#`));
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
      if (ran.is === 'leading') this.#history.took(token, this.#clock.now(), lease);
      return ran;
    });
    if (reply.is === 'leading') this.led.set(key, token);
    return reply;
  }

  leaseLeft(key: string): Promise<number> {
    return this.#send('leaseLeft', key, () => this.#store.leaseLeft(key));
  }

  end(request: EndRequest): Promise<EndReply> {
    const { key, token, entry } = request;
    const run = async () => {
      const ran = await this.#store.end(request);
      if (ran.is === 'held' && entry)
        this.#history.stored(key, token, originOf(entry.text), this.#clock.now() + entry.px);
      return ran;
    };
    return this.#send('end', `${key} ${token}${entry ? ' with entry' : ''}`, run, () => this.#astrayEnds.add(token));
  }

  renew(request: RenewRequest): Promise<RenewReply> {
    const { key, token, lease } = request;
    return this.#send('renew', `${key} ${token}`, async () => {
      const ran = await this.#store.renew(request);
      if (ran === 'held') this.#history.took(token, this.#clock.now(), lease);
      return ran;
    });
  }

  replace(request: ReplaceRequest): Promise<void> {
    const { key, by } = request;
    const claim = typeof by === 'object' ? by : undefined;
    return this.#send('replace', `${key} by ${claim ? `claim ${claim.claim}` : by}`, async () => {
      await this.#store.replace(request);
      this.#history.replaced(key, claim?.claim);
      if (claim) this.#history.took(claim.claim, this.#clock.now(), claim.lease);
    });
  }

  onWake(wake: (token: string | undefined) => void): void {
    this.#wake = wake;
    this.#store.onWake((token) => {
      if (this.wakeUpsToLose > 0) this.wakeUpsToLose -= 1;
      else
        void this.#pick(`${this.#index}: woken by ${token}`, this.#slowness('wake-up').answer).then(() =>
          this.wake(token),
        );
    });
  }

  wake(token: string | undefined): void {
    if (this.crashed) return;
    this.#history.step(`${this.#index}: woken by ${token}`);
    this.#wake(token);
  }

  onChange(listener: ChangeListener): void {
    this.#changes = listener;
    this.#store.onChange?.({
      ...listener,
      changed: (key) => this.#isDeaf || this.#tell(this.#history.published(this.#index, key), listener),
    });
  }

  #tell(change: ChangeRecord, listener: ChangeListener): void {
    const label = `${this.#index}: told that ${change.key} changed at ${change.publishedAt}`;
    const slow = this.#slowness('change').answer;
    this.#untold.add(change);
    this.#lastChange = this.#lastChange
      .then(() => this.#pick(label, slow))
      .then(() => {
        if (this.crashed || !this.#untold.delete(change)) return;
        change.toldAt = this.#history.step(label);
        listener.changed(change.key);
      });
  }

  /** The subscription ends, with all that was on its way, and comes back. */
  resubscribe(): void {
    this.wake(undefined);
    if (!this.#changes || this.#isDeaf) return;
    const at = this.#history.step(`${this.#index}: deaf to changes`);
    this.#isDeaf = true;
    for (const change of this.#untold) change.toldAt = at;
    this.#untold.clear();
    this.#changes.deaf();
    void this.#pick(`${this.#index}: hears of changes`, 0).then(() => {
      this.#history.step(`${this.#index}: hears of changes`);
      this.#isDeaf = false;
      this.#changes?.listens(Infinity);
    });
  }

  async #send<T>(
    command: StoreCommand,
    what: string,
    run: () => Promise<T>,
    astray: () => void = () => {},
  ): Promise<T> {
    if (this.crashed) return never();
    const label = `${this.#index}: ${command} ${what}`;
    const fault = takeFirst(this.faults, (next) => next.command === command)?.is;
    this.#history.step(`${label} is sent${fault ? ` (${fault})` : ''}`);
    if (fault === 'request lost' || fault === 'late') astray();
    const inOrder = fault !== 'late';
    const slow = this.#slowness(command);
    const running = (inOrder ? this.#lastRun : Promise.resolve()).then(async () => {
      await this.#pick(`${label} runs`, inOrder ? slow.run : LATE);
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
      this.#pick(`${label} is answered`, inOrder ? slow.answer : LATE),
    );
    if (inOrder) this.#lastReply = replying;
    await replying;
    if (this.crashed) return never();
    this.#history.step(`${label} is answered`);
    return ran.reply;
  }

  #slowness(what: Slowness['what']): Slowness {
    return takeFirst(this.slow, (next) => next.what === what) ?? { what, run: 0, answer: 0 };
  }

  async #pick(label: string, more: number): Promise<void> {
    for (let picked = 0; picked <= more; picked++) await this.#scheduler.schedule(Promise.resolve(), label);
  }
}

function originOf(text: string): Origin {
  return JSON.parse(parseEntry(text)?.payload ?? '') as Origin;
}

function never(): Promise<never> {
  return new Promise(() => {});
}

function takeFirst<T>(list: T[], is: (item: T) => boolean): T | undefined {
  const found = list.findIndex(is);
  return found < 0 ? undefined : list.splice(found, 1)[0];
}
