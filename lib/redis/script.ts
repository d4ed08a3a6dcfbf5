/** A Lua script, sent as EVALSHA and, where the server doesn't know it yet, as EVAL. */
export interface Script {
  /** The name of the method it becomes on a client. */
  readonly name: string;
  readonly lua: string;
}

/** What runs a script: a client of ioredis. */
export interface ScriptClient {
  defineCommand(name: string, definition: { lua: string }): void;
}

type Run = (numberOfKeys: number, ...keysAndArguments: string[]) => Promise<unknown>;

/** @returns the script's reply; whoever wrote the script knows its type */
export function runScript(
  client: ScriptClient,
  script: Script,
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> {
  if (!(script.name in client)) client.defineCommand(script.name, { lua: script.lua });
  return (client as unknown as Record<string, Run>)[script.name]!(keys.length, ...keys, ...args);
}

/** Whole milliseconds as Redis takes them. */
export function milliseconds(duration: number): string {
  return String(Math.max(1, Math.ceil(duration)));
}
