/**
 * Carries out a plan: starts Redis and the processes, does to them what the plan says, sees to it that all comes to rest, and
 * answers with the history of it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultProxy, Verdict } from '../support/fault-proxy.js';
import { startProcesses, type WorkerProcess } from '../support/processes.js';
import { historyOf } from './book.js';
import type { Accident, Fault, History, Measurement, Probe, ProcessLife, Sighting } from './history.js';
import type { Action, Plan } from './plan.js';
import { Source } from './source.js';
import { type Servers, startServers } from './topology.js';
import { keysOf, LOCK_PROFILES, MANY_RENEWALS, MOSTLY_FREE, PROFILES } from './workload.js';

export interface RunSettings {
  /** The path of `torture.worker.mjs`. */
  readonly worker: string;
  /** What the processes import the library from. */
  readonly library?: string;
}

const NAMESPACE = 'torture';
/** More than the default, so that a busy machine isn't taken for a Redis that is away. */
const COMMAND_TIMEOUT = 1_000;
/** A `set` claims with the cache's own lease, 5 s. */
const LONGEST_LEASE = Math.max(5_000, ...[...PROFILES, ...LOCK_PROFILES].map(({ options }) => options.lease));
/** So long after Redis came back all has to work again. */
const RECOVERED = 2_000;
const LOOK_EVERY = 100;
/** Longer than this, and the machine, or the server, was too busy. */
const STALLED = 150;
/** So old is a process when its heap is first measured. */
const WARM = 4_000;
/** One that is to be lost comes within so many milliseconds, or not. */
const LOST_WITHIN = 3_000;
/**
 * The script of a renewal, of one lock or of several at once, since those of one turn travel together. Its only keys are locks:
 * other scripts have more, and a look at a lock is no script.
 */
const RENEWAL = new RegExp(
  `evalsha(?=(\\r\\n\\S+){4}(\\r\\n\\$\\d+\\r\\n${NAMESPACE}:\\{${MANY_RENEWALS}-\\d+\\}:lock)+(?!\\r\\n\\S+\\r\\n${NAMESPACE}:))`,
);
/** Each third renewal of a process fails: so seldom that no lease ends by that, and so often that each of those loads sees it. */
const FAILS_EVERY = 3;
/** What calls may still take when all is over. */
const PATIENCE = 20_000;

interface Worker {
  start(): Promise<string>;
  warm(): Promise<void>;
  probe(key: string): Promise<{ from: number; until: number; hit: boolean }>;
  finish(patience: number): Promise<{ at: number; unanswered: number }>;
  measure(): Promise<Omit<Measurement, 'process'>>;
  close(): Promise<void>;
  end(): Promise<void>;
}

/** A process's place: when one dies, another takes it. */
interface Place {
  readonly number: number;
  /** Under sentinels there is none. */
  proxy?: FaultProxy;
  connection: unknown;
  /** What an aimed trouble does to a request; `undefined` when it doesn't mean that one. */
  aim?: ((request: string) => Verdict | undefined) | undefined;
  /** How many renewals have passed the proxy. */
  renewals: number;
  member: Member | undefined;
  /** Somebody is on the way out, or in. */
  changing: boolean;
}

interface Member {
  readonly name: string;
  readonly process: WorkerProcess<Worker>;
  readonly store: string;
  readonly from: number;
}

export const now = (): number => Number(process.hrtime.bigint()) / 1e6;

export async function run(plan: Plan, settings: RunSettings): Promise<History> {
  const servers = await startServers(plan.topology);
  const source = await Source.open();
  const director = new Director(plan, settings, servers, source);
  try {
    return await director.direct();
  } finally {
    await director.stop();
    await source.close();
    await servers.stop();
  }
}

class Director {
  readonly #plan: Plan;
  readonly #settings: RunSettings;
  readonly #servers: Servers;
  readonly #source: Source;
  readonly #places: Place[] = [];
  readonly #faults: Fault[] = [];
  readonly #lives: ProcessLife[] = [];
  readonly #probes: Probe[] = [];
  readonly #sightings: Sighting[] = [];
  readonly #measurements: Measurement[] = [];
  readonly #accidents: Accident[] = [];
  /** Every process that was ever started. */
  readonly #started = new Set<WorkerProcess<Worker>>();
  /** What is under way. */
  readonly #underWay = new Set<Promise<void>>();
  /** One thing at a time happens to Redis. */
  #redis: Promise<void> = Promise.resolve();
  #members = 0;
  #timers: NodeJS.Timeout[] = [];

  constructor(plan: Plan, settings: RunSettings, servers: Servers, source: Source) {
    this.#plan = plan;
    this.#settings = settings;
    this.#servers = servers;
    this.#source = source;
  }

  async direct(): Promise<History> {
    const { processes, steps, seconds } = this.#plan;
    const numbers = Array.from({ length: processes }, (_, number) => number);
    await Promise.all(numbers.map((number) => this.#open(number)));
    const from = now();
    this.#watch();
    for (const { at, action } of steps) {
      await sleep(Math.max(0, from + at - now()));
      this.#begin(() => this.#act(action));
    }
    await sleep(Math.max(0, from + seconds * 1_000 - now()));
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
    const until = await this.#finish();
    return this.#write(from, until);
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.allSettled([...this.#started].map((process) => process.kill()));
  }

  #begin(run: () => Promise<void>): void {
    const running: Promise<void> = run()
      .catch((error) => this.#accident('director', String((error as Error).stack)))
      .finally(() => this.#underWay.delete(running));
    this.#underWay.add(running);
  }

  #accident(process: string, what: string): void {
    this.#accidents.push({ process, at: now(), what });
  }

  async #act(action: Action): Promise<void> {
    switch (action.does) {
      case 'freeze redis':
        return this.#withoutRedis('redis frozen', undefined, async () => {
          this.#servers.primary.freeze();
          await sleep(action.lasts);
          this.#servers.primary.thaw();
        });
      case 'restart redis':
        return this.#withoutRedis(
          `redis restarted, data ${action.data}`,
          action.data === 'lost' ? 'locks' : undefined,
          () => this.#servers.restart(action.away, action.data),
        );
      case 'fail over':
        return this.#withoutRedis('failover', 'locks and writes', () => this.#servers.failOver());
      case 'kill primary':
        return this.#withoutRedis('primary killed', 'locks and writes', () => this.#servers.killPrimary());
      case 'kill clients':
        return this.#cut('CLIENT KILL', undefined, async () => {
          await Promise.all([this.#killClients('normal'), this.#killClients('pubsub')]);
        });
      case 'kill subscriptions':
        return this.#cut('subscriptions killed', undefined, async () => {
          for (const until = now() + action.lasts; now() < until; await sleep(30)) await this.#killClients('pubsub');
        });
      case 'flush scripts':
        return this.#during({ is: 'script flush', what: 'SCRIPT FLUSH' }, async () => {
          await this.#servers.primary.client().script('FLUSH');
        });
      case 'drop locks':
        return this.#during({ is: 'locks dropped', what: 'locks deleted', lost: 'locks' }, () =>
          this.#dropLocks(action.lasts),
        );
      case 'lose renewal':
        return this.#loseRenewal(action.lasts);
      case 'leave':
        return this.#leave(this.#places[action.process]!);
      case 'cut':
        return action.process === 'all' ? this.#cutAll() : this.#cutOne(this.#places[action.process]!);
      default:
        return this.#actOn(this.#places[action.process]!, action);
    }
  }

  async #actOn(place: Place, action: Extract<Action, { process: number; does: string }>): Promise<void> {
    const { member, proxy } = place;
    if (!member || place.changing) return;
    const { name: process } = member;
    switch (action.does) {
      case 'blackhole': {
        const direction = action.way === 'toClient' ? 'toClient' : undefined;
        await this.#during({ is: 'blackhole', what: `blackhole, ${action.way}`, process }, async () => {
          proxy?.hold(direction);
          await sleep(action.lasts);
          proxy?.release(direction);
        });
        return this.#probeAfter('blackhole', [place]);
      }
      case 'lose':
        await this.#during({ is: 'blackhole', what: `${action.what} lost, then no connection`, process }, async () => {
          await nextLost(place, action.what);
          await sleep(action.lasts);
          await proxy?.accept();
        });
        return this.#probeAfter('lose', [place]);
      case 'delay':
        return this.#during({ is: 'delay', what: `up to ${action.most} ms each way`, process }, async () => {
          proxy?.delay({ min: 0, max: action.most });
          await sleep(action.lasts);
          this.#usualDelay(place);
        });
      case 'freeze process':
        return this.#during({ is: 'freeze', what: 'process frozen', process }, async () => {
          member.process.freeze();
          await sleep(action.lasts);
          member.process.thaw();
        });
      case 'kill process':
        return this.#kill(place, member);
    }
  }

  async #during(fault: Omit<Fault, 'from' | 'until'>, run: () => Promise<void>): Promise<void> {
    const from = now();
    // What goes on while calls run has to be known even if this fails.
    try {
      await run();
    } finally {
      this.#faults.push({ ...fault, from, until: now() });
    }
  }

  #withoutRedis(what: string, lost: Fault['lost'], run: () => Promise<void>): Promise<void> {
    this.#redis = this.#redis.then(async () => {
      await this.#during({ is: 'redis away', what, lost }, run);
      this.#begin(() => this.#probeAfter(what, this.#places));
    });
    return this.#redis;
  }

  async #cut(what: string, process: string | undefined, run: () => void | Promise<void>): Promise<void> {
    await this.#during({ is: 'cut', what, process }, async () => run());
  }

  #cutAll(): Promise<void> {
    return this.#cut('all connections cut', undefined, () => {
      for (const { proxy } of this.#places) proxy?.cut();
    });
  }

  #cutOne({ member, proxy }: Place): Promise<void> {
    return this.#cut('connections cut', member?.name, () => proxy?.cut());
  }

  /** Those of the processes: not our own, nor a sentinel's. */
  async #killClients(type: 'normal' | 'pubsub'): Promise<void> {
    const client = this.#servers.primary.client();
    const own = await client.client('ID');
    const list = String(await client.call('CLIENT', 'LIST', 'TYPE', type));
    for (const [, id, name] of list.matchAll(/^id=(\d+) .*? name=(\S*) /gm)) {
      if (id !== String(own) && name === '') await client.call('CLIENT', 'KILL', 'ID', id!);
    }
  }

  /** Again and again, so that whatever has a lock loses it, however shortly it has it. */
  async #dropLocks(lasts: number): Promise<void> {
    const client = this.#servers.primary.client();
    for (const until = now() + lasts; now() < until; await sleep(15))
      await client.del(...lockNames().map(({ name }) => name));
  }

  /** What whoever renews next is answered from then on comes later. */
  async #loseRenewal(lasts: number): Promise<void> {
    const place = await new Promise<Place | undefined>((found) => {
      for (const each of this.#places)
        each.aim = (request) => {
          if (!RENEWAL.test(request)) return undefined;
          found(each);
          return 'pass';
        };
      setTimeout(() => found(undefined), LOST_WITHIN);
    });
    for (const each of this.#places) each.aim = undefined;
    if (!place?.member) return;
    await this.#during({ is: 'blackhole', what: 'a renewal lost', process: place.member.name }, async () => {
      place.proxy?.hold('toClient');
      await sleep(lasts);
      place.proxy?.release('toClient');
    });
  }

  /** A renewal becomes a command that the server doesn't know: it alone fails, so that nothing is excused by it. */
  #failSome(place: Place, request: string): Verdict {
    if (!place.member || !RENEWAL.test(request)) return 'pass';
    place.renewals++;
    if (place.renewals % FAILS_EVERY !== 0) return 'pass';
    const at = now();
    this.#faults.push({
      is: 'renewal failed',
      what: 'a renewal failed',
      process: place.member.name,
      from: at,
      until: at,
    });
    return { instead: request.replace(RENEWAL, 'unknown') };
  }

  async #kill(place: Place, member: Member): Promise<void> {
    place.changing = true;
    await member.process.kill();
    this.#bury(place, member, 'killed');
    await this.#fill(place);
  }

  /** One closes, as an application does that is told to, and another comes. */
  async #leave(place: Place): Promise<void> {
    const { member } = place;
    if (!member || place.changing) return;
    place.changing = true;
    await member.process.call('finish', PATIENCE);
    await member.process.call('close');
    const from = now();
    await this.#end(member);
    this.#bury(place, member, 'left', from);
    await this.#fill(place);
  }

  async #end(member: Member): Promise<void> {
    await member.process.call('end');
    this.#started.delete(member.process);
    await member.process.stop();
  }

  #bury(place: Place, { name, store, from, process }: Member, end: ProcessLife['end'], until = now()): void {
    this.#started.delete(process);
    this.#lives.push({ process: name, store, from, until, end });
    place.member = undefined;
  }

  async #open(number: number): Promise<void> {
    const place: Place = { number, ...(await this.#servers.connect()), renewals: 0, member: undefined, changing: true };
    this.#places[number] = place;
    place.proxy?.onRequest((request) => place.aim?.(request) ?? this.#failSome(place, request));
    this.#usualDelay(place);
    await this.#fill(place);
  }

  #usualDelay({ number, proxy }: Place): void {
    const { process, most } = this.#plan.distant;
    proxy?.delay({ min: 0, max: number === process ? most : 0 });
  }

  async #fill(place: Place): Promise<void> {
    const name = `p${++this.#members}`;
    const torture = {
      name,
      seed: this.#plan.seed * 1_000 + this.#members,
      source: this.#source.path,
      connection: place.connection,
      library: this.#settings.library ?? 'nestjs-stampede-cache',
      namespace: NAMESPACE,
      commandTimeout: COMMAND_TIMEOUT,
      processes: this.#plan.processes,
      isFar: place.number === this.#plan.distant.process,
      profiles: PROFILES,
      lockProfiles: LOCK_PROFILES,
    };
    const env = { TORTURE: JSON.stringify(torture) };
    const [process] = await startProcesses<Worker>(this.#settings.worker, 1, { env });
    this.#started.add(process!);
    void process!.exited.then(({ code, signal }) => {
      if (this.#started.has(process!) && signal !== 'SIGKILL')
        this.#accident(name, `the process ended, ${signal ?? code}`);
    });
    const from = now();
    const store = await process!.call('start');
    place.member = { name, process: process!, store, from };
    place.changing = false;
    this.#timers.push(setTimeout(() => process!.call('warm').catch(() => {}), WARM));
  }

  /** It has so long to recover; then a new key has to be loaded once, and found. */
  async #probeAfter(after: string, places: readonly Place[]): Promise<void> {
    const over = now();
    const members = places.flatMap(({ member, changing }) => (member && !changing ? [member] : []));
    await sleep(RECOVERED);
    await Promise.all(
      members.map(async ({ name, process }) => {
        const probe = await process.call('probe', `probe-${name}-${over}`).catch(() => undefined);
        if (probe) this.#probes.push({ process: name, after, over, ...probe });
      }),
    );
  }

  /** Looks which locks there are, and whether the machine keeps up. */
  #watch(): void {
    const names = lockNames();
    let ticked = now();
    let looking = false;
    const look = async () => {
      const from = now();
      if (from - ticked > LOOK_EVERY + STALLED) this.#stalled('the director stood still', ticked, from);
      ticked = from;
      if (looking) return;
      looking = true;
      const client = this.#servers.primary.client();
      const locks = await client.mget(...names.map(({ name }) => name)).catch(() => undefined);
      looking = false;
      const at = now();
      if (at - from > STALLED) this.#stalled('redis was slow', from, at);
      else if (locks) {
        for (const [i, { kind, key }] of names.entries()) {
          const lock = locks[i];
          if (lock) this.#sightings.push({ at, kind, key, token: lock.split(',')[0]! });
        }
      }
    };
    this.#timers.push(setInterval(() => void look(), LOOK_EVERY));
  }

  #stalled(what: string, from: number, until: number): void {
    this.#faults.push({ is: 'stall', what, from, until });
  }

  /** All calls are answered, all leases over; then it is counted what is left. */
  async #finish(): Promise<number> {
    const members = this.#places.flatMap(({ member }) => (member ? [member] : []));
    const ends = await Promise.all(members.map(({ process }) => process.call('finish', PATIENCE)));
    const until = Math.max(...ends.map(({ at }) => at));
    // Locks of the living are seen to be gone; for those of the dead we wait.
    const lastKill = Math.max(0, ...this.#lives.filter(({ end }) => end === 'killed').map((life) => life.until));
    const patience = Math.max(now() + 1_000, lastKill + LONGEST_LEASE + 500);
    let left: string[];
    do {
      await sleep(Math.min(1_000, patience - now()));
      left = (await this.#servers.primary.client().keys(`${NAMESPACE}:*`)).filter((name) =>
        /:(lock|mutex)$/.test(name),
      );
    } while (left.length > 0 && now() < patience);
    for (const name of left) this.#accident('redis', `${name} is still locked after the last lease`);
    for (const member of members) {
      this.#measurements.push({ process: member.name, ...(await member.process.call('measure')) });
    }
    for (const place of this.#places) {
      const { member } = place;
      if (!member) continue;
      await this.#end(member);
      this.#bury(place, member, 'stayed');
    }
    return until;
  }

  #write(from: number, until: number): History {
    return {
      seed: this.#plan.seed,
      topology: this.#plan.topology,
      commandTimeout: COMMAND_TIMEOUT,
      from,
      until,
      profiles: PROFILES,
      lockProfiles: LOCK_PROFILES,
      probes: this.#probes,
      sightings: this.#sightings,
      measurements: this.#measurements,
      ...historyOf(this.#source.lines, this.#lives, this.#faults, this.#accidents),
    };
  }
}

/** The process's next acquire of a lock that is mostly free, or its release, is lost; from then on it gets no new connection. */
async function nextLost(place: Place, what: 'acquire' | 'release'): Promise<void> {
  const giveUp = new AbortController();
  place.aim = (request) => {
    const isAcquire = request.includes(`{${MOSTLY_FREE}}:fence`);
    const isRelease = request.includes(`{${MOSTLY_FREE}}:mutex`) && !isAcquire;
    if (!(what === 'acquire' ? isAcquire : isRelease)) return undefined;
    place.aim = undefined;
    place.proxy?.refuse();
    giveUp.abort();
    return what === 'acquire' ? 'cutReply' : 'cut';
  };
  await sleep(LOST_WITHIN, undefined, { signal: giveUp.signal }).catch(() => {});
  place.aim = undefined;
}

/** Of all keys that several have. */
function lockNames(): { kind: 'cache' | 'lock'; key: string; name: string }[] {
  const keys = PROFILES.flatMap((profile) => (profile.lone ? [] : keysOf(profile)));
  return [
    ...keys.map((key) => ({ kind: 'cache' as const, key, name: `${NAMESPACE}:{${key}}:lock` })),
    ...LOCK_PROFILES.map(({ name: key }) => ({ kind: 'lock' as const, key, name: `${NAMESPACE}:{${key}}:mutex` })),
  ];
}
