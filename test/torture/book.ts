/** Makes a history of the lines that the processes wrote. */
import type { Accident, Call, Fault, History, Hold, Load, ProcessLife, Refusal, Write } from './history.js';
import type { Line } from './source.js';

type FromLines = Pick<
  History,
  'processes' | 'faults' | 'calls' | 'loads' | 'writes' | 'holds' | 'refusals' | 'accidents'
>;
/** Each kind of line is written in one place, `torture.worker.mjs`, as these types say: `t` says which of them it is. */
type Written = Partial<Call & Load & Write & Omit<Hold, 'extendedAt'> & Refusal & Accident & Fault> & {
  readonly id: string;
  readonly at: number;
};
type Changing<T> = { -readonly [K in keyof T]: T[K] };

export function historyOf(
  lines: readonly Line[],
  processes: readonly ProcessLife[],
  directed: readonly Fault[],
  seen: readonly Accident[],
): FromLines {
  const faults = [...directed];
  const accidents = [...seen];
  const calls: Call[] = [];
  const refusals: Refusal[] = [];
  const loads = new Map<string, Changing<Load>>();
  const writes = new Map<string, Changing<Write>>();
  const holds = new Map<string, Changing<Hold> & { extendedAt: number[] }>();
  for (const { t, ask: _, ...rest } of lines) {
    const line = rest as unknown as Written;
    switch (t) {
      case 'call':
        calls.push(line as Call);
        break;
      case 'load':
        loads.set(line.id, { until: undefined, came: undefined, abortedAt: undefined, ...line } as Load);
        break;
      case 'loaded':
        Object.assign(loads.get(line.id) ?? {}, { until: line.at, came: line.came });
        break;
      case 'aborted':
        Object.assign(loads.get(line.id) ?? {}, { abortedAt: line.at });
        break;
      case 'write':
        writes.set(line.id, { until: undefined, acknowledged: false, ...line } as Write);
        break;
      case 'written': {
        const { from, until, acknowledged, error } = line;
        Object.assign(writes.get(line.id) ?? {}, { from, until, acknowledged, error });
        break;
      }
      case 'hold':
        holds.set(line.id, {
          lostAt: undefined,
          releasedAt: undefined,
          until: undefined,
          wasOurs: undefined,
          extendedAt: [],
          ...line,
        } as Hold & { extendedAt: number[] });
        break;
      case 'lost':
        Object.assign(holds.get(line.id) ?? {}, { lostAt: line.at });
        break;
      case 'extended':
        holds.get(line.id)?.extendedAt.push(line.at);
        break;
      case 'releasing':
        Object.assign(holds.get(line.id) ?? {}, { releasedAt: line.at });
        break;
      case 'released':
        Object.assign(holds.get(line.id) ?? {}, { until: line.at, wasOurs: line.wasOurs });
        break;
      case 'refused':
        refusals.push(line as Refusal);
        break;
      case 'stall':
        faults.push({
          is: 'stall',
          what: 'the process stood still',
          process: line.process,
          from: line.from,
          until: line.until,
        } as Fault);
        break;
      case 'slow':
        faults.push({
          is: 'slow',
          what: 'replies were slow',
          process: line.process,
          from: line.from,
          until: line.until,
        } as Fault);
        break;
      case 'accident':
        accidents.push({ process: line.process, at: line.at, what: line.what } as Accident);
        break;
      default:
        throw new Error(`A line that nobody knows: ${t}`);
    }
  }
  return {
    processes,
    faults,
    accidents,
    calls,
    refusals,
    loads: [...loads.values()],
    writes: [...writes.values()],
    holds: [...holds.values()],
  };
}
