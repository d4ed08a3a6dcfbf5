import { type Cluster, Command, type Redis } from 'ioredis';
import { systemClock } from '../core/clock.js';

/** Nodes that are missing are asked for anew so often at most, in milliseconds. */
const PAUSE = 1_000;

const askedAt = new WeakMap<Cluster, number>();

/** The addresses of the primary and the replicas that hold a name, as far as is known. */
export function nodesOf(cluster: Cluster, name: string): readonly string[] {
  return cluster.slots[new Command('get', [name]).getSlot()] ?? [];
}

/**
 * The client for one node, `undefined` when there is none: it was lost, or isn't known yet.
 *
 * @throws while it connects: what is sent then would wait there, perhaps for longer than anybody waits for it
 */
export function clientAt(cluster: Cluster, address: string | undefined): Redis | undefined {
  const node = cluster.nodes('all').find(({ options: { host, port } }) => `${host}:${port}` === address);
  if (node && node.status !== 'ready' && node.status !== 'wait') throw new Error(`no connection to ${address} yet`);
  return node;
}

/** ioredis asks which nodes there are only when a slot has moved, and one may come, or come back, without that. */
export function askForNodes(cluster: Cluster): void {
  const now = systemClock.now();
  if (now - (askedAt.get(cluster) ?? Number.NEGATIVE_INFINITY) < PAUSE) return;
  askedAt.set(cluster, now);
  cluster.refreshSlotsCache();
}
