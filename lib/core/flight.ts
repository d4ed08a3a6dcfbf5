import { freshnessLeft, stalenessOf } from './aged.js';
import type { Caller } from './caller.js';
import { Callers, type CallersWatch } from './callers.js';
import { CacheClosedError, CacheUnavailableError, CacheWaitTimeoutError, StoreReplyError } from './errors.js';
import { type Led, lead } from './lead.js';
import type { Lease } from './lease.js';
import type { AbortReason } from './load.js';
import { needsAge } from './resolved-options.js';
import { Running } from './running.js';
import { answerOf, answerStale, type EndResult, readOutcome, reportLoad, settleWith } from './settling.js';
import type { WaitingReply } from './store.js';
import type { Tower } from './tower.js';
import { LOOK, Waiting } from './waiting.js';
import type { TokenWatch } from './wake-ups.js';
import { planWrite, type Write } from './write.js';

/** How a flight begins: the read was a miss, so it leads; or the store is away, so it loads without a lock. */
export type Start =
  | { readonly is: 'miss'; readonly unreadable?: string | undefined; readonly refreshing?: number | undefined }
  | { readonly is: 'store away'; readonly error: unknown };

function isRound(next: Next): next is Round {
  return typeof next === 'object' && 'look' in next;
}

/** What a flight does next: look again, do without the store, or nothing more. */
type Next = Round | StoreAway | 'concluded';

interface StoreAway {
  readonly storeAway: unknown;
  /** It answers, but too slowly for a lease. */
  readonly isOnlySlow?: boolean;
}

interface Round {
  readonly look: 'read' | 'lead';
  /** This flight has waited since there was this outcome, or `''` for none: a new one is an answer. */
  readonly outcomeSeen?: string | undefined;
  /** An entry's text that can't be read: it counts as missing. */
  readonly unreadable?: string | undefined;
  /** The moment until which an entry is fresh that is to be replaced early. */
  readonly refreshing?: number | undefined;
  /** The last load's error could not be read: it keeps nobody from trying. */
  readonly heedless?: boolean;
  /** The lock came when its lease was nearly over. A store that does so twice is of no use. */
  readonly wasTooSlow?: boolean;
}

/** The script that found it has compared it with the store's time. */
const FRESH_BY_SCRIPT = Number.NEGATIVE_INFINITY;

/** So many looks at a lock show that somebody has one; whether still the one that is waited for, only `lead` tells. In time for its outcome. */
const MOST_LOOKS = 6;

const REFUSED = { is: 'refused' } as const;
const UNANSWERED = { is: 'unanswered' } as const;

/**
 * The callers of one key in one process, from a read that missed to their answer: lead, then load or follow.
 *
 * The proof rule: a reply answers only those who had joined before its command was sent. So whoever sends a command notes
 * how many had joined, and those who came later go round again. Without it, a caller that joins after an eviction was
 * acknowledged could get what was read or loaded before.
 */
export class Flight implements CallersWatch {
  readonly key: string;
  readonly #tower: Tower;
  readonly #callers: Callers;
  readonly #waiting: Waiting;
  #running: Running | undefined;
  /** Somebody was answered with an old value, so that the new one is of use even if nobody waits for it. */
  #isOwed = false;

  constructor(key: string, tower: Tower) {
    this.key = key;
    this.#tower = tower;
    this.#waiting = new Waiting(tower.clock, tower.random, LOOK);
    this.#callers = new Callers(tower.clock, this);
  }

  /** Nobody waits for it: who finds the old value still good is answered with that, and must not wait for this. */
  get isBackground(): boolean {
    return this.#callers.areBackground;
  }

  join(callers: readonly Caller[]): void {
    this.#callers.join(callers);
    if (callers.some(({ isInLoader }) => isInLoader)) this.#running?.load.hurry();
  }

  /** Flies until every caller is answered or goes round again in another flight. */
  async fly(start: Start): Promise<void> {
    let next: Next =
      start.is === 'miss'
        ? { look: 'lead', unreadable: start.unreadable, refreshing: start.refreshing }
        : { storeAway: start.error };
    while (isRound(next) && this.#callers.first) {
      const joined = this.#callers.board();
      next = next.look === 'read' ? await this.#read(joined, next) : await this.#lead(joined, next);
    }
    if (isRound(next)) this.#tower.depart(this);
    else if (next !== 'concluded') await this.#doWithout(next);
  }

  /**
   * The lock was taken from what this flight loads or waits for: an eviction or a `set`. What is loading goes on for the
   * callers it is proven for; the others, and those to come, lead anew.
   */
  leaseEnded(): void {
    const running = this.#running;
    if (!running) this.#waiting.stir();
    if (!running || running.leaseEnded) return;
    running.leaseEnded = true;
    this.#tower.depart(this);
    if (!running.lease) return;
    running.lease.forget();
    const others = this.#callers.takeAfter(running.proven);
    if (others.length > 0) this.#tower.lead(this.key, others);
  }

  /**
   * An eviction or a `set` is about to be sent. Once it is known what came of it, what is returned is to be called: that ends
   * the lease of what runs now. What was led since then may have run before or after it, so it is checked.
   */
  replacing(): (acknowledged: boolean) => void {
    const ran = this.#running;
    return (acknowledged) => {
      const running = this.#running;
      if (!running) this.#waiting.stir();
      else if (running === ran && (acknowledged || !running.lease)) this.leaseEnded();
      else running.lease?.check();
    };
  }

  waitEnded(caller: Caller): void {
    const { clock, events, lastResort } = this.#tower;
    const waited = clock.now() - caller.startedAt;
    if (events.observed) events.emit({ type: 'wait-timeout', key: this.key, waited }, caller.calls);
    if (answerStale(events, this.key, caller, 'wait-timeout')) {
      this.#leftWithOld();
    } else if (caller.options.onWaitTimeout === 'load') {
      lastResort.load(this.key, caller);
    } else {
      caller.fail(new CacheWaitTimeoutError(this.key, waited));
      this.left();
    }
  }

  softWaitEnded(caller: Caller): void {
    if (answerStale(this.#tower.events, this.key, caller, 'soft-timeout')) this.#leftWithOld();
  }

  /** A caller left early. When nobody is left, there is nothing to wait for. */
  left(): void {
    if (this.#callers.first) return;
    this.#waiting.stir();
    if (!this.#isOwed && this.#running?.owner.options.abortWhenUnused) this.#running.load.abort('unused');
  }

  /** Ends the flight now: aborts its load and releases its lock. Its callers get the error. */
  close(error: unknown = new CacheClosedError()): void {
    this.#tower.depart(this);
    if (this.#running) this.#running.load.abort('closed');
    this.#callers.settle(this.#callers.count, (caller) => caller.fail(error));
    this.#waiting.stir();
  }

  /** After a wake-up the value is probably there, so that a plain read will do. */
  async #read(joined: number, { outcomeSeen }: Round): Promise<Next> {
    const options = this.#callers.first?.options;
    const found = await this.#tower.look(this.key, options !== undefined && needsAge(options));
    if ('storeAway' in found) return found;
    if (typeof found.text === 'string' && this.#answer(found.text, joined, found.now)) return 'concluded';
    return { look: 'lead', outcomeSeen };
  }

  /** Rechecks and asks for the lock in one step. Whoever gets it loads; whoever doesn't follows. */
  async #lead(joined: number, { outcomeSeen, unreadable, refreshing, heedless, wasTooSlow }: Round): Promise<Next> {
    const lease = this.#callers.first?.options.lease ?? 0;
    let led: Led;
    try {
      led = await lead(this.#tower, {
        kind: 'cache',
        key: this.key,
        token: this.#tower.newToken(),
        lease,
        outcomeSeen,
        unreadable,
        refreshing,
        follow: !this.isBackground,
        heedsError: !heedless && this.#callers.canDoWithout,
      });
    } catch (error) {
      return { storeAway: error };
    }
    const { reply } = led;
    try {
      if (reply.is === 'hit') {
        return this.#answer(reply.text, joined, FRESH_BY_SCRIPT)
          ? 'concluded'
          : { look: 'lead', unreadable: reply.text };
      }
      if (reply.is === 'outcome')
        return this.#share(reply.text, joined) ? 'concluded' : { look: 'lead', heedless: true };
      if (reply.is === 'waiting') return await this.#follow(reply, led.watch);
      if (!led.lease.isNearlyOver) return await this.#load(led, joined);
      await this.#release(led.lease);
      return wasTooSlow
        ? { storeAway: new Error('its replies come when the lease is nearly over'), isOnlySlow: true }
        : { look: 'lead', wasTooSlow: true };
    } finally {
      led.watch.stop();
    }
  }

  /** Waits for another process's load. */
  async #follow(reply: WaitingReply, watch: TokenWatch): Promise<Next> {
    // Somebody else refreshes it; those who asked for that are answered.
    this.#callers.settle(this.#callers.count, (caller) => caller.isBackground && caller.fail(undefined));
    if (!this.#callers.first) {
      this.#tower.depart(this);
      return 'concluded';
    }
    const { events } = this.#tower;
    if (events.observed) events.emit({ type: 'wait', key: this.key });
    this.#callers.startDeadlines();
    return this.#sleep(reply, watch);
  }

  /**
   * Until the lock has ended, or the store is away: a look at the lock, now and then, also tells soon whether the store is
   * there. A look at the expiry as well, since a `lead` that isn't answered takes longer to be given up.
   */
  async #sleep({ outcomeSeen, wakes, leaseLeft }: WaitingReply, watch: TokenWatch): Promise<Next> {
    for (let looks = 0; ; looks++) {
      const by = await this.#waiting.sleep({ wakes, leaseLeft }, watch);
      if (by === 'woken') return { look: 'read', outcomeSeen };
      if (by === 'unsure' || !wakes) return { look: 'lead', outcomeSeen };
      try {
        leaseLeft = await this.#tower.store.leaseLeft(this.key);
      } catch (error) {
        return { storeAway: error };
      }
      if (by === 'expiry' || leaseLeft === 0 || looks === MOST_LOOKS || !this.#callers.first)
        return { look: 'lead', outcomeSeen };
    }
  }

  /** Answers with an entry. False when it isn't fresh, or can't be read. */
  #answer(text: string, joined: number, now: number | undefined): boolean {
    const found = this.#tower.readEntry(this.key, text, this.#callers.first);
    if (!found || stalenessOf(found, now) !== 'fresh') return false;
    const { events } = this.#tower;
    const left = now === FRESH_BY_SCRIPT ? undefined : freshnessLeft(found, now);
    this.#conclude(joined, (caller) => {
      if (events.observed && !caller.isBackground) events.emit({ type: 'hit', key: this.key }, caller.calls);
      caller.answer(found.answer, { is: 'hit', left });
    });
    return true;
  }

  /** Gives what another process's load came to. False when that can't be read. */
  #share(text: string, joined: number): boolean {
    const { events } = this.#tower;
    const settle = readOutcome(this.#tower, this.key, text, this.#callers.first);
    if (!settle) return false;
    if (events.observed) events.emit({ type: 'outcome', key: this.key });
    this.#conclude(joined, settle);
    return true;
  }

  /** Loads under the lease, and ends it. */
  async #load({ lease, watch }: Led, joined: number): Promise<Next> {
    const running = this.#start(lease, joined);
    if (!running) {
      await this.#release(lease);
      return { look: 'lead' };
    }
    running.keepLease(
      watch,
      () => this.#callers.count,
      () => running === this.#running && this.leaseEnded(),
    );
    const result = await running.load.result;
    lease.forget();
    this.#running = undefined;
    if (result.is === 'aborted') return this.#giveUp(result.why, lease, running.owner);

    const write = planWrite(result, running.owner.options, this.#tower);
    const joinedBeforeEnd = this.#callers.count;
    const end = running.leaseEnded ? REFUSED : await this.#end(lease, write);
    reportLoad(this.#tower.events, this.key, result, write, end);
    const stored = end.is === 'held' && end.stored ? write.entry : undefined;
    const settle = settleWith(this.#tower.events, this.key, result, answerOf(result, running.owner, write), stored);
    // Cut off from the store, a process answers with what it has loaded.
    if (end.is === 'refused') this.#conclude(running.proven, settle, 'lead');
    else this.#conclude(joinedBeforeEnd, settle);
    return 'concluded';
  }

  /**
   * The store is away. Those who would rather have an error get it; for the others one loader a process answers, and nothing
   * is stored. A store that answers, though not as it should, is still reached by the evictions of others: then who joins
   * meanwhile goes round again.
   */
  async #doWithout({ storeAway, isOnlySlow = false }: StoreAway): Promise<void> {
    const joined = this.#callers.count;
    this.#callers.settle(joined, (caller) => {
      if (caller.isBackground) caller.fail(storeAway);
      else if (caller.options.onRedisError === 'throw') this.#failWithout(caller, storeAway);
    });
    const running = this.#start(undefined, 0);
    if (!running) return this.#tower.depart(this);
    const result = await running.load.result;
    this.#running = undefined;
    const write = result.is === 'aborted' ? {} : planWrite(result, running.owner.options, this.#tower);
    const answer = answerOf(result, running.owner, write);
    if (answer && write.entry && !running.leaseEnded && !isOnlySlow) this.#tower.keep(this.key, answer, write.entry);
    reportLoad(this.#tower.events, this.key, result, write, UNANSWERED);
    const isCutOff = !isOnlySlow && !(storeAway instanceof StoreReplyError);
    const answered = isCutOff ? this.#callers.count : joined;
    this.#conclude(answered, settleWith(this.#tower.events, this.key, result, answer));
  }

  #failWithout(caller: Caller, cause: unknown): void {
    const { events } = this.#tower;
    if (!answerStale(events, this.key, caller, 'if-error', cause))
      caller.fail(new CacheUnavailableError('read', { cause }));
  }

  #start(lease: Lease | undefined, proven: number): Running | undefined {
    const owner = this.#callers.first;
    if (!owner) return undefined;
    this.#callers.startDeadlines(owner);
    this.#running = new Running(this.key, owner, lease, proven, this.#tower);
    if (this.#callers.someAreInLoader) this.#running.load.hurry();
    return this.#running;
  }

  async #end(lease: Lease, { entry, outcome, holdOff }: Write): Promise<EndResult> {
    try {
      return await lease.end({ entry, outcome, holdOff });
    } catch (error) {
      return { ...UNANSWERED, error };
    }
  }

  /** The load was aborted. If its lease was lost, its callers go on and follow the new leader. */
  async #giveUp(why: AbortReason, lease: Lease, owner: Caller): Promise<Next> {
    if (why === 'lost') {
      owner.waitAnew(this.#tower.clock);
      return { look: 'lead' };
    }
    this.#conclude(this.#callers.count, (caller) => why === 'closed' && caller.fail(new CacheClosedError()));
    await this.#release(lease);
    return 'concluded';
  }

  /** Gives the lock back. If the store does not answer, it is tried again until it does. */
  async #release(lease: Lease): Promise<void> {
    await lease.end().catch(() => {});
  }

  /** Settles those of the first `joined` that it is for; all others go round again. */
  #conclude(joined: number, settle: (caller: Caller) => void, next: 'read' | 'lead' = 'read'): void {
    this.#tower.depart(this);
    this.#callers.settle(joined, settle);
    const others = this.#callers.takeAfter(0);
    if (others.length > 0) this.#tower[next](this.key, others);
  }

  #leftWithOld(): void {
    this.#isOwed = true;
    this.left();
  }
}
