import { type Cluster, Command } from 'ioredis';
import { type Client, isCluster, isReplyError } from './client.js';

/** What there was under a name: a text, nothing, or an error that says why it could not be read. */
export type Found = string | undefined | Error;

/**
 * The texts under these names, in one round trip: one `MGET`, or on a Cluster one pipeline a node. What is no text counts as
 * nothing; it is overwritten by the next one that is.
 */
export async function read(client: Client, names: readonly string[]): Promise<Found[]> {
  const [name] = names;
  if (name === undefined) return [];
  if (names.length === 1) return [await readOne(client, name)];
  if (isCluster(client)) return readCluster(client, names);
  return (await client.mget(...names)).map((text) => text ?? undefined);
}

async function readOne(client: Client, name: string): Promise<string | undefined> {
  try {
    return (await client.get(name)) ?? undefined;
  } catch (error) {
    if (isWrongType(error)) return undefined;
    throw error;
  }
}

async function readCluster(cluster: Cluster, names: readonly string[]): Promise<Found[]> {
  const found = new Map<string, Found>();
  await Promise.all(byNode(cluster, names).map((group) => readGroup(cluster, group, found)));
  return names.map((name) => found.get(name));
}

/** ioredis takes into one pipeline what one primary and its replicas hold. */
function byNode(cluster: Cluster, names: readonly string[]): string[][] {
  const groups = new Map<string, string[]>();
  for (const name of names) {
    const nodes = cluster.slots[new Command('get', [name]).getSlot()]?.join() ?? '';
    const group = groups.get(nodes);
    if (group) group.push(name);
    else groups.set(nodes, [name]);
  }
  return [...groups.values()];
}

async function readGroup(cluster: Cluster, names: readonly string[], found: Map<string, Found>): Promise<void> {
  const pipeline = cluster.pipeline();
  for (const name of names) pipeline.get(name);
  const replies = (await pipeline.exec()) ?? [];
  await Promise.all(
    names.map(async (name, i) => {
      const [error, text] = replies[i] as [Error | null, string | null];
      found.set(name, error ? await readAfter(cluster, name, error) : (text ?? undefined));
    }),
  );
}

/** @throws when there was no reply */
async function readAfter(cluster: Cluster, name: string, error: Error): Promise<Found> {
  if (!isReplyError(error)) throw error;
  // A pipeline follows a slot that is moving only if all of it moves; a command of its own always does.
  if (/^(MOVED|ASK|TRYAGAIN)/.test(error.message)) return readOne(cluster, name);
  return isWrongType(error) ? undefined : error;
}

function isWrongType(error: unknown): boolean {
  return isReplyError(error) && error.message.startsWith('WRONGTYPE');
}
