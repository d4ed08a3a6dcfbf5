import type { Cluster, Redis } from 'ioredis';
import type { ReadReply } from '../core/store.js';
import { type Client, isCluster, isReplyError } from './client.js';
import { clientAt, nodesOf } from './cluster-nodes.js';
import { inOneWrite } from './gather-writes.js';
import { sendBatch } from './script.js';

/** What there was under a name: a text, nothing, or an error that says why it could not be read. */
type Found = string | undefined | Error;

/**
 * The texts under these names, in one round trip: one `GET` or `MGET`, with a `TIME` in the same write if that is asked for; on
 * a Cluster a `GET` for each, in one write a node. What is no text counts as nothing; it is overwritten by the next one that is.
 */
export function read(client: Client, names: readonly string[], withTime: boolean): Promise<ReadReply> {
  const [name] = names;
  if (name === undefined) return Promise.resolve({ texts: [] });
  // An eviction that nobody waits for, called before this, is also sent before it.
  sendBatch(client);
  // Most reads are this one: that costs one promise.
  if (names.length === 1 && !withTime) return client.get(name).then(replyOf, (error) => replyOf(noText(error)));
  if (isCluster(client)) return readCluster(client, names, withTime);
  return withTime ? readWithTime(client, names) : readTexts(client, names).then((texts) => ({ texts }));
}

function replyOf(text: string | null | undefined): ReadReply {
  return { texts: [text ?? undefined] };
}

function readOne(client: Client, name: string): Promise<Found> {
  return client.get(name).then((text) => text ?? undefined, noText);
}

/** @throws the error, unless it says that there is something else than a text */
function noText(error: unknown): undefined {
  if (!isWrongType(error)) throw error;
}

async function readWithTime(client: Redis, names: readonly string[]): Promise<ReadReply> {
  const [time, texts] = await inOneWrite(client, () => Promise.all([client.time(), readTexts(client, names)]));
  return { texts, now: milliseconds(time) };
}

/** Plain connections to a Cluster's only node, or to one behind a proxy: for them `MGET` has the keys of one slot. */
const crossing = new WeakSet<Redis>();

function readTexts(client: Redis, names: readonly string[]): Promise<Found[]> {
  if (names.length > 1 && !crossing.has(client)) {
    return client.mgetBuffer(...names).then(textsOf, (error) => {
      if (!isReplyError(error) || !error.message.startsWith('CROSSSLOT')) throw error;
      crossing.add(client);
      return readTexts(client, names);
    });
  }
  return inOneWrite(client, () => Promise.all(names.map((name) => readOne(client, name))));
}

async function readCluster(cluster: Cluster, names: readonly string[], withTime: boolean): Promise<ReadReply> {
  const found = new Map<string, Found>();
  const times = await Promise.all(byNode(cluster, names).map((group) => readGroup(cluster, group, found, withTime)));
  const texts = names.map((name) => found.get(name));
  // Of several nodes the latest: who is in doubt is no longer fresh.
  return withTime ? { texts, now: Math.max(...times) } : { texts };
}

function byNode(cluster: Cluster, names: readonly string[]): string[][] {
  const groups = new Map<string, string[]>();
  for (const name of names) {
    const [primary = ''] = nodesOf(cluster, name);
    const group = groups.get(primary);
    if (group) group.push(name);
    else groups.set(primary, [name]);
  }
  return [...groups.values()];
}

/** @returns the node's time, or 0 when it isn't asked for */
async function readGroup(
  cluster: Cluster,
  names: readonly string[],
  found: Map<string, Found>,
  withTime: boolean,
): Promise<number> {
  const node = nodeFor(cluster, names[0] ?? '');
  if (!node) {
    // The Cluster finds one, and what is sent by itself always goes where it belongs.
    await Promise.all(names.map(async (name) => found.set(name, await readOne(cluster, name))));
    return withTime ? milliseconds(await cluster.time()) : 0;
  }
  // By the node's own client: the Cluster's pipeline picks a node for each of its commands, when it doesn't know the right one,
  // and gives up on some and not on others: of those nothing is sent, and yet the next replies are taken for theirs.
  const readAt = (name: string) =>
    node.get(name).then(
      (text) => found.set(name, text ?? undefined),
      async (error) => found.set(name, await readAfter(cluster, name, error)),
    );
  const [time] = await inOneWrite(node, () =>
    Promise.all([withTime ? node.time().then(milliseconds) : 0, ...names.map(readAt)]),
  );
  return time;
}

/** The primary, or any of its replicas where reads go to those. */
function nodeFor(cluster: Cluster, name: string): Redis | undefined {
  const [primary, ...replicas] = nodesOf(cluster, name);
  const replica = cluster.options.scaleReads === 'slave' && replicas[Math.floor(Math.random() * replicas.length)];
  return clientAt(cluster, replica || primary);
}

/** @throws when there was no reply */
async function readAfter(cluster: Cluster, name: string, error: Error): Promise<Found> {
  if (!isReplyError(error)) throw error;
  // A node's client follows no slot that moves; the Cluster's does.
  if (/^(MOVED|ASK|TRYAGAIN)/.test(error.message)) return readOne(cluster, name);
  return isWrongType(error) ? undefined : error;
}

/**
 * Takes the texts out of a reply. ioredis has for each command a function that V8 keeps until a full collection, and with it
 * the command and its reply, with hundreds of texts in each: `test/stampede/garbage.spec.ts` tells how much.
 */
function textsOf(reply: (Buffer | null)[]): Found[] {
  const texts = reply.map((text) => text?.toString());
  reply.length = 0;
  return texts;
}

/** What `TIME` replies: seconds, and microseconds of the present second. */
function milliseconds(time: unknown): number {
  const [seconds, microseconds] = time as [string | number, string | number];
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
}

function isWrongType(error: unknown): boolean {
  return isReplyError(error) && error.message.startsWith('WRONGTYPE');
}
