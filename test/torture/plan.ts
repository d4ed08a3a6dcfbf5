/** What happens when: made of the seed alone, so that the same seed plans the same. */
import { seeded } from '../support/seeded.js';

export type Topology = 'standalone' | 'sentinel';

/** What can happen. Of a process, by its place: whoever is there then. */
export type Action =
  | { readonly does: 'freeze redis'; readonly lasts: number }
  | { readonly does: 'restart redis'; readonly away: number; readonly data: 'kept' | 'lost' }
  | { readonly does: 'fail over' }
  | { readonly does: 'kill primary' }
  | {
      readonly does: 'blackhole';
      readonly process: number;
      readonly lasts: number;
      readonly way: 'both' | 'toClient';
    }
  /** The reply to an acquire doesn't come, or a release doesn't arrive; and then there is no connection for a while. */
  | { readonly does: 'lose'; readonly what: 'acquire' | 'release'; readonly process: number; readonly lasts: number }
  /** Of whoever renews next: no reply to it comes in time, and all is well again. */
  | { readonly does: 'lose renewal'; readonly lasts: number }
  | { readonly does: 'delay'; readonly process: number; readonly lasts: number; readonly most: number }
  | { readonly does: 'cut'; readonly process: number | 'all' }
  | { readonly does: 'kill clients' }
  /** Wake-ups are lost, and commands are answered: the hour of the proof rule. */
  | { readonly does: 'kill subscriptions'; readonly lasts: number }
  | { readonly does: 'flush scripts' }
  | { readonly does: 'drop locks'; readonly lasts: number }
  | { readonly does: 'freeze process'; readonly process: number; readonly lasts: number }
  | { readonly does: 'kill process'; readonly process: number }
  | { readonly does: 'leave'; readonly process: number };

export interface Step {
  /** Milliseconds from the start. */
  readonly at: number;
  readonly action: Action;
}

export interface Plan {
  readonly seed: number;
  readonly seconds: number;
  readonly topology: Topology;
  readonly processes: number;
  /** This process is always a little further away from Redis than the others, in milliseconds each way. */
  readonly distant: { readonly process: number; readonly most: number };
  readonly steps: readonly Step[];
}

export const PROCESSES = 4;
/** Before the first, so that there is something to break; and after the last, so that all can come to rest. */
const WARM_UP = 1_500;
const CALM = 3_500;
/** Until the lease is over of which a renewal was lost: had that been the last, another would load. */
const LEASE_OVER = 4_000;
/** After Redis was away nothing happens until it has been seen whether all works again. */
const PROBED = 3_200;

export function planOf(seed: number, seconds: number, topology: Topology): Plan {
  const random = seeded(seed);
  const between = (least: number, most: number) => Math.round(least + random() * (most - least));
  const process = () => between(0, PROCESSES - 1);
  const draw = (): Action[] => shuffled(deck(topology, between, process), random);
  const steps: Step[] = [];
  let cards = draw();
  let at = WARM_UP;
  for (;;) {
    if (cards.length === 0) cards = draw();
    const action = cards.shift()!;
    const { lasts, calm } = timeOf(action);
    if (at + lasts + calm > seconds * 1_000 - CALM) break;
    steps.push({ at, action });
    // Some troubles don't come alone.
    if (lasts >= 500 && isOfAll(action) && random() < 0.5) {
      const second: Action =
        random() < 0.5
          ? { does: 'kill process', process: process() }
          : { does: 'freeze process', process: process(), lasts: between(200, lasts) };
      steps.push({ at: at + between(50, lasts - 100), action: second });
    }
    at += lasts + calm + between(100, 500);
  }
  return {
    seed,
    seconds,
    topology,
    processes: PROCESSES,
    distant: { process: process(), most: between(40, 80) },
    steps,
  };
}

export function describePlan({ seed, seconds, topology, distant, steps }: Plan): string {
  const lines = steps.map(({ at, action: { does, ...how } }) => {
    const details = Object.entries(how).map(([name, value]) => `${name} ${value}`);
    return `  ${(at / 1_000).toFixed(2).padStart(6)} s  ${[does, ...details].join(', ')}`;
  });
  const head = `seed ${seed}, ${seconds} s, ${topology}; process ${distant.process} is up to ${distant.most} ms away`;
  return [head, ...lines].join('\n');
}

function deck(topology: Topology, between: (least: number, most: number) => number, process: () => number): Action[] {
  const everywhere: Action[] = [
    { does: 'freeze redis', lasts: between(2_900, 3_800) },
    { does: 'kill clients' },
    { does: 'kill subscriptions', lasts: between(1_500, 3_000) },
    { does: 'kill subscriptions', lasts: between(1_500, 3_000) },
    { does: 'flush scripts' },
    { does: 'drop locks', lasts: between(300, 900) },
    // Once, so that another has it when the holder renews.
    { does: 'drop locks', lasts: 1 },
    { does: 'freeze process', process: process(), lasts: between(300, 2_500) },
    { does: 'kill process', process: process() },
    { does: 'leave', process: process() },
  ];
  if (topology === 'sentinel') return [...everywhere, { does: 'fail over' }, { does: 'kill primary' }];
  return [
    ...everywhere,
    { does: 'freeze redis', lasts: between(1_300, 2_000) },
    { does: 'restart redis', away: between(100, 2_600), data: 'kept' },
    { does: 'restart redis', away: between(100, 2_000), data: 'lost' },
    { does: 'blackhole', process: process(), lasts: between(2_500, 4_000), way: 'both' },
    { does: 'blackhole', process: process(), lasts: between(1_100, 2_000), way: 'toClient' },
    { does: 'lose', what: 'acquire', process: process(), lasts: between(1_200, 1_700) },
    { does: 'lose', what: 'release', process: process(), lasts: between(1_200, 1_700) },
    { does: 'lose renewal', lasts: between(1_100, 1_300) },
    { does: 'lose renewal', lasts: between(1_100, 1_300) },
    { does: 'delay', process: process(), lasts: between(1_000, 2_500), most: between(60, 120) },
    { does: 'cut', process: process() },
    { does: 'cut', process: 'all' },
  ];
}

function isOfAll({ does }: Action): boolean {
  return does === 'freeze redis' || does === 'restart redis' || does === 'fail over' || does === 'kill primary';
}

/** How long it goes on, as far as that is known, and how long nothing else happens then. */
function timeOf(action: Action): { lasts: number; calm: number } {
  switch (action.does) {
    case 'freeze redis':
      return { lasts: action.lasts, calm: PROBED };
    case 'restart redis':
      return { lasts: action.away + 200, calm: PROBED };
    case 'fail over':
      return { lasts: 3_000, calm: PROBED };
    case 'kill primary':
      return { lasts: 8_000, calm: PROBED };
    case 'blackhole':
    case 'lose':
      return { lasts: action.lasts, calm: PROBED };
    case 'lose renewal':
      return { lasts: action.lasts, calm: LEASE_OVER };
    case 'drop locks':
      return { lasts: action.lasts, calm: 1_500 };
    case 'delay':
    case 'kill subscriptions':
    case 'freeze process':
      return { lasts: action.lasts, calm: 500 };
    case 'leave':
      return { lasts: 500, calm: 300 };
    default:
      return { lasts: 0, calm: 800 };
  }
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const left = [...items];
  const order: T[] = [];
  while (left.length > 0) order.push(...left.splice(Math.floor(random() * left.length), 1));
  return order;
}
