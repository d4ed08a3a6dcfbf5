import { messageOf } from '../core/message-of.js';
import type { Client } from './client.js';

/** A Lua script, sent as EVALSHA and, where the server doesn't know it yet, as EVAL. */
export interface Script {
  /** The name of the method it becomes on a client. */
  readonly name: string;
  readonly lua: string;
  /**
   * It is called by timers, of which many may be due in one turn of the event loop: it waits for those. The others wait for
   * the tick's end only, as reads do.
   */
  readonly isTimed?: boolean;
}

/**
 * So many calls are one script at most: the server works on those while its client makes the next, and holds nobody up. The
 * first of a tick are fewer, so that the server begins early, else it waits for its client, and then that for it.
 */
const FIRST_CALLS = 4;
const MOST_CALLS = 16;
/** So long are the keys and arguments of several calls at most: who sends big entries gets each reply as soon as it is there. */
const LONGEST = 64 * 1024;

type Run = (numberOfKeys: number, ...keysAndArguments: (string | number)[]) => Promise<unknown>;

interface Call {
  readonly keys: readonly string[];
  readonly args: readonly string[];
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The calls of scripts on one server that start in one tick of the event loop, sent when it ends, in their order: those of
 * the same script that follow each other as one. Each EVALSHA costs its client and its server more than what our scripts do.
 *
 * Not for a Cluster, where a script has the keys of one slot. A server that turns out to be one, behind a proxy or as the only
 * node, has each by itself from then on.
 */
export class ScriptBatches {
  readonly #client: Client;
  #script: Script | undefined;
  #calls: Call[] = [];
  #most = FIRST_CALLS;
  /** Of the keys and arguments of these calls. */
  #length = 0;
  #sendsWithTick = false;
  #sendsWithTurn = false;
  #isCluster = false;

  constructor(client: Client) {
    this.#client = client;
  }

  run(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const length = lengthOf(keys) + lengthOf(args);
      if (!this.#takes(script, keys, args, length)) {
        this.#send();
        this.#most = Math.min(2 * this.#most, MOST_CALLS);
      }
      this.#script = script;
      this.#calls.push({ keys, args, resolve, reject });
      this.#length += length;
      if (script.isTimed) this.#sendWithTurn();
      else this.#sendWithTick();
    });
  }

  #sendWithTick(): void {
    if (this.#sendsWithTick) return;
    this.#sendsWithTick = true;
    process.nextTick(() => {
      this.#sendsWithTick = false;
      this.send();
    });
  }

  #sendWithTurn(): void {
    if (this.#sendsWithTurn) return;
    this.#sendsWithTurn = true;
    setImmediate(() => {
      this.#sendsWithTurn = false;
      this.send();
    });
  }

  /** Sends what waits, now. */
  send(): void {
    this.#most = FIRST_CALLS;
    this.#send();
  }

  #send(): void {
    const script = this.#script;
    const calls = this.#calls;
    this.#script = undefined;
    this.#calls = [];
    this.#length = 0;
    const [only] = calls;
    if (!script || !only) return;
    if (calls.length === 1) this.#sendOne(script, only);
    else this.#sendAll(script, calls);
  }

  #takes(script: Script, keys: readonly string[], args: readonly string[], length: number): boolean {
    const [first] = this.#calls;
    if (!first) return true;
    return (
      script === this.#script &&
      keys.length === first.keys.length &&
      args.length === first.args.length &&
      this.#calls.length < this.#most &&
      this.#length + length <= LONGEST &&
      !this.#isCluster
    );
  }

  #sendOne(script: Script, { keys, args, resolve, reject }: Call): void {
    try {
      callScript(this.#client, script, keys, args).then(resolve, reject);
    } catch (error) {
      // What is too long for one string, ioredis throws at once, and here nobody would catch it.
      reject(error);
    }
  }

  #sendAll(script: Script, calls: readonly Call[]): void {
    const keys: string[] = [];
    const args: string[] = [];
    for (const call of calls) {
      keys.push(...call.keys);
      args.push(...call.args);
    }
    args.push(String(calls.length));
    // What is too long for one string, ioredis throws at once.
    new Promise((sent) => sent(callScript(this.#client, batchOf(script), keys, args))).then(
      (replies) => {
        for (const [i, { resolve, reject }] of calls.entries()) {
          const reply = (replies as unknown[])[i];
          if (reply instanceof Error) reject(reply);
          else resolve(reply);
        }
      },
      (error) => {
        // Then none of them was run.
        const crossesSlots = /^CROSSSLOT|same slot/.test(messageOf(error));
        this.#isCluster ||= crossesSlots;
        for (const call of calls) {
          if (crossesSlots) this.#sendOne(script, call);
          else call.reject(error);
        }
      },
    );
  }
}

function lengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, { length }) => sum + length, 0);
}

/** Sends one EVALSHA and, where the server doesn't know the script yet, an EVAL. */
export function callScript(
  client: Client,
  { name, lua }: Script,
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> {
  if (!(name in client)) client.defineCommand(name, { lua });
  return (client as unknown as Record<string, Run>)[name]!(keys.length, ...keys, ...args);
}

const batches = new WeakMap<Script, Script>();

/**
 * The script that runs another for each of several calls with as many keys and arguments: those of the first, of the second and
 * so on; and at last how many they are. One that fails has its error in the place of its reply. But when the server isn't a
 * primary any more, all of them have that answer, by which the client knows to connect anew.
 */
function batchOf(script: Script): Script {
  let batch = batches.get(script);
  if (!batch) {
    batch = {
      name: `${script.name}Batch`,
      lua: `
local function run(KEYS, ARGV)
${script.lua}
end

local calls = tonumber(ARGV[#ARGV])
local keys, args = #KEYS / calls, (#ARGV - 1) / calls
local replies = {}
for i = 0, calls - 1 do
  local isDone, reply = pcall(run, {unpack(KEYS, i * keys + 1, i * keys + keys)}, {unpack(ARGV, i * args + 1, i * args + args)})
  if not isDone then
    -- Redis 6 throws a text.
    if type(reply) ~= 'table' then reply = {err = reply} end
    if string.find(reply.err, 'READONLY', 1, true) then return reply end
  end
  replies[i + 1] = reply
end
return replies
`,
    };
    batches.set(script, batch);
  }
  return batch;
}
