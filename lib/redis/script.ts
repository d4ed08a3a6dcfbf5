import type { Client } from './client.js';
import { gatherWrites } from './gather-writes.js';
import { callScript, type Script, ScriptBatches } from './script-batches.js';

export type { Script };

const batched = new WeakMap<Client, ScriptBatches>();

/** From now on, the scripts that are run on this client in one tick of the event loop are sent together. It is no Cluster's. */
export function batchScripts(client: Client): void {
  batched.set(client, new ScriptBatches(client));
}

/** Sends what still waits for the others of its tick. */
export function sendBatch(client: Client): void {
  batched.get(client)?.send();
}

/** @returns the script's reply; whoever wrote the script knows its type */
export function runScript(client: Client, script: Script, keys: readonly string[], args: string[]): Promise<unknown> {
  // Each costs its client more than all that the script does with it.
  while (args.at(-1) === '') args.pop();
  const batches = batched.get(client);
  if (batches) return batches.run(script, keys, args);
  gatherWrites(client);
  return callScript(client, script, keys, args);
}

/** Whole milliseconds as Redis takes them. */
export function milliseconds(duration: number): string {
  return String(Math.max(1, Math.ceil(duration)));
}
