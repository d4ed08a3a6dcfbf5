import { Answer } from './answer.js';
import type { Caller } from './caller.js';
import { Callers } from './callers.js';
import { CacheClosedError, CacheWaitTimeoutError } from './errors.js';
import { type Led, lead } from './lead.js';
import type { Lease } from './lease.js';
import { type AbortReason, Load } from './load.js';
import { type EndResult, readOutcome, reportLoad, settleWith } from './settling.js';
import type { WaitingReply } from './store.js';
import type { Freshness, Tower } from './tower.js';
import { Waiting } from './waiting.js';
import { planWrite, type Write } from './write.js';

/** How a flight begins: the read was a miss, so it leads; or the store is away, so it loads without a lock. */
export type Start = { readonly is: 'miss'; readonly unreadable?: string | undefined } | { readonly is: 'store away' };

/** A load that is under way. */
interface Running {
  readonly load: Load;
  readonly owner: Caller;
  readonly lease: Lease | undefined;
  /** How many callers may get the value even if the lease should turn out to have ended. */
  proven: number;
  leaseEnded: boolean;
}

const REFUSED = { is: 'refused' } as const;
const UNANSWERED = { is: 'unanswered' } as const;

/**
 * The callers of one key in one process, from a read that missed to their answer: lead, then load or follow.
 *
 * The proof rule: a reply answers only those who had joined before its command was sent. So whoever sends a command notes
 * how many had joined, and those who came later go round again. Without it, a caller that joins after an eviction was
 * acknowledged could get what was read or loaded before.
 */
export class Flight {
  readonly key: string;
  readonly #tower: Tower;
  readonly #callers: Callers;
  readonly #waiting: Waiting;
  #running: Running | undefined;

  constructor(key: string, tower: Tower) {
    this.key = key;
    this.#tower = tower;
    this.#waiting = new Waiting(tower.clock, tower.wakeUps, tower.random);
    this.#callers = new Callers(tower.clock, {
      waitEnded: (caller) => this.#waitEnded(caller),
      left: () => this.#left(),
    });
  }

  join(callers: readonly Caller[]): void {
    this.#callers.join(callers);
  }

  /** Flies until every caller is answered or goes round again in another flight. */
  async fly(start: Start): Promise<void> {
    if (start.is === 'store away') return this.#loadAlone();
    let { unreadable } = start;
    let waitedFor: string | undefined;
    let next: 'read' | 'lead' = 'lead';
    while (this.#callers.first) {
      const joined = this.#callers.board();
      if (next === 'read') {
        const found = await this.#read(joined);
        if (found === 'concluded') return;
        if (found === 'store away') return this.#loadAlone();
        next = 'lead';
        continue;
      }
      const led = await this.#lead(waitedFor, unreadable);
      if (led === 'store away') return this.#loadAlone();
      const { reply, lease, endedMeanwhile } = led;
      waitedFor = undefined;
      switch (reply.is) {
        case 'hit':
          if (this.#answer(reply.text, joined, 'proven')) return;
          unreadable = reply.text;
          break;
        case 'outcome':
          if (this.#share(reply.text, joined)) return;
          break;
        case 'leading':
          if (lease.isNearlyOver) this.#release(lease);
          else if ((await this.#load(lease, joined, endedMeanwhile)) === 'concluded') return;
          break;
        case 'waiting':
          waitedFor = reply.token;
          next = endedMeanwhile ? 'read' : await this.#follow(reply);
      }
    }
    this.#tower.depart(this);
  }

  /**
   * The lock was taken from what this flight loads or waits for: an eviction or a `set`. What is loading goes on for the
   * callers it is proven for; the others, and those to come, lead anew.
   */
  leaseEnded(): void {
    const running = this.#running;
    if (!running) return this.#waiting.stir();
    if (running.leaseEnded) return;
    running.leaseEnded = true;
    this.#tower.depart(this);
    if (!running.lease) return;
    running.lease.forget();
    const others = this.#callers.takeAfter(running.proven);
    if (others.length > 0) this.#tower.lead(this.key, others);
  }

  /** The same, when the store did not acknowledge it: what loads without a lease is over for callers to come. */
  leaseMayHaveEnded(): void {
    if (this.#running?.lease) this.#running.lease.check();
    else this.leaseEnded();
  }

  /** Ends the flight now: aborts its load and releases its lock. Its callers get the error. */
  close(error: unknown = new CacheClosedError()): void {
    if (this.#running) this.#running.load.abort('closed');
    this.#callers.settle(this.#callers.count, (caller) => caller.fail(error));
    this.#waiting.stir();
  }

  async #read(joined: number): Promise<'concluded' | 'missed' | 'store away'> {
    try {
      const [text] = await this.#tower.store.read([this.key]);
      return typeof text === 'string' && this.#answer(text, joined, 'if never stamped') ? 'concluded' : 'missed';
    } catch {
      return 'store away';
    }
  }

  async #lead(waitedFor: string | undefined, unreadable: string | undefined): Promise<Led | 'store away'> {
    const lease = this.#callers.first?.options.lease ?? 0;
    try {
      return await lead(this.#tower, { kind: 'cache', key: this.key, lease, waitedFor, unreadable, follow: true });
    } catch {
      return 'store away';
    }
  }

  /** Waits for another process's load. After a wake-up the value is probably there, so that a read will do. */
  async #follow(reply: WaitingReply): Promise<'read' | 'lead'> {
    const { events } = this.#tower;
    if (events.observed) events.emit({ type: 'wait', key: this.key });
    this.#callers.startDeadlines();
    return (await this.#waiting.sleep(reply)) === 'woken' ? 'read' : 'lead';
  }

  /** Answers with an entry. False when it can't be used. */
  #answer(text: string, joined: number, fresh: Freshness): boolean {
    const found = this.#tower.readEntry(this.key, text, this.#callers.first, fresh);
    if (!(found instanceof Answer)) return false;
    const { events } = this.#tower;
    this.#conclude(joined, (caller) => {
      if (events.observed) events.emit({ type: 'hit', key: this.key });
      caller.answer(found);
    });
    return true;
  }

  /** Gives what another process's load came to. False when that can't be read. */
  #share(text: string, joined: number): boolean {
    const { events, errorCodec } = this.#tower;
    const settle = readOutcome(text, this.#callers.first, errorCodec);
    if (!settle) return false;
    if (events.observed) events.emit({ type: 'outcome', key: this.key });
    this.#conclude(joined, settle);
    return true;
  }

  /** Loads under the lease, and ends it. */
  async #load(lease: Lease, joined: number, endedMeanwhile: boolean): Promise<'concluded' | 'again'> {
    const running = this.#start(lease, joined);
    if (!running) {
      this.#release(lease);
      return 'again';
    }
    const stopListening = this.#keep(lease, running);
    if (endedMeanwhile) this.leaseEnded();
    const result = await running.load.result;
    stopListening();
    lease.forget();
    this.#running = undefined;
    if (result.is === 'aborted') return this.#giveUp(result.why, lease, running.owner);

    const write = planWrite(result, running.owner.options, this.#tower);
    const joinedBeforeEnd = this.#callers.count;
    const end = running.leaseEnded ? REFUSED : await this.#end(lease, write);
    reportLoad(this.#tower.events, this.key, result, write, end);
    const settle = settleWith(result, running.owner, write.payload);
    // Cut off from the store, a process answers with what it has loaded.
    if (end.is === 'refused') this.#conclude(running.proven, settle, 'lead');
    else this.#conclude(joinedBeforeEnd, settle);
    return 'concluded';
  }

  /** Loads without a lock, because the store is away: one load a process, and nothing is stored. */
  async #loadAlone(): Promise<void> {
    const running = this.#start(undefined, 0);
    if (!running) return this.#tower.depart(this);
    const result = await running.load.result;
    this.#running = undefined;
    reportLoad(this.#tower.events, this.key, result, {}, UNANSWERED);
    this.#conclude(this.#callers.count, settleWith(result, running.owner));
  }

  #start(lease: Lease | undefined, proven: number): Running | undefined {
    const owner = this.#callers.first;
    if (!owner) return undefined;
    const { clock, events } = this.#tower;
    if (events.observed) events.emit({ type: 'load', key: this.key, alone: lease === undefined });
    this.#callers.startDeadlines(owner);
    this.#running = { load: new Load(this.key, owner, clock), owner, lease, proven, leaseEnded: false };
    return this.#running;
  }

  /** Keeps the lease while the load runs, and listens for its end. Returns how to stop listening. */
  #keep(lease: Lease, running: Running): () => void {
    const { events, wakeUps } = this.#tower;
    lease.keep({
      renewing: () => {
        const joined = this.#callers.count;
        return () => {
          running.proven = joined;
        };
      },
      lost: (how) => {
        const holder = how === 'other' ? 'other' : 'gone';
        if (events.observed) events.emit({ type: 'lease-lost', key: this.key, holder });
        if (holder === 'other') running.load.abort('lost');
        else this.leaseEnded();
      },
    });
    return wakeUps.on(lease.token, (certain) => (certain ? this.leaseEnded() : lease.check()));
  }

  async #end(lease: Lease, { entry, outcome }: Write): Promise<EndResult> {
    try {
      return await lease.end({ entry, outcome });
    } catch (error) {
      return { ...UNANSWERED, error };
    }
  }

  /** The load was aborted. If its lease was lost, its callers go on and follow the new leader. */
  #giveUp(why: AbortReason, lease: Lease, owner: Caller): 'concluded' | 'again' {
    if (why === 'lost') {
      owner.waitAnew(this.#tower.clock);
      return 'again';
    }
    this.#release(lease);
    this.#conclude(this.#callers.count, (caller) => why === 'closed' && caller.fail(new CacheClosedError()));
    return 'concluded';
  }

  #release(lease: Lease): void {
    lease.end().catch(() => {});
  }

  /** Settles those of the first `joined` that it is for; all others go round again. */
  #conclude(joined: number, settle: (caller: Caller) => void, next: 'read' | 'lead' = 'read'): void {
    this.#tower.depart(this);
    this.#callers.settle(joined, settle);
    const others = this.#callers.takeAfter(0);
    if (others.length > 0) this.#tower[next](this.key, others);
  }

  #waitEnded(caller: Caller): void {
    const { clock, events, lastResort } = this.#tower;
    const waited = clock.now() - caller.startedAt;
    if (events.observed) events.emit({ type: 'wait-timeout', key: this.key, waited });
    if (caller.options.onWaitTimeout === 'load') return lastResort.load(this.key, caller);
    caller.fail(new CacheWaitTimeoutError(this.key, waited));
    this.#left();
  }

  /** A caller left early. When nobody is left, there is nothing to wait for. */
  #left(): void {
    if (this.#callers.first) return;
    this.#waiting.stir();
    if (this.#running?.owner.options.abortWhenUnused) this.#running.load.abort('unused');
  }
}
