import type { Cluster, ClusterOptions, Redis, RedisOptions } from 'ioredis';
import { LONGEST_WAIT } from '../core/durations.js';
import { InvalidOptionError } from '../core/errors.js';
import { type Client, isCluster } from './client.js';

/** Deadlines in milliseconds. */
export interface ClientDeadlines {
  readonly commandTimeout: number;
  readonly connectTimeout: number;
}

/** At most so many milliseconds between two attempts, so that who comes back is found soon. */
const LONGEST_RETRY_DELAY = 1_000;

/** How long closing waits for the server to close too, in milliseconds. */
export const DISCONNECT_TIMEOUT = 200;

/** A connection that says nothing for so many milliseconds, though replies are due, is given up. */
export function longestSilence({ commandTimeout }: ClientDeadlines): number {
  return Math.min(Math.max(1_500, 3 * commandTimeout), LONGEST_WAIT);
}

/** Milliseconds before the next attempt to connect, at random, so that many processes don't come back all at once. */
export function retryDelay(attempt: number): number {
  return Math.min(LONGEST_RETRY_DELAY, 50 * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2);
}

/** The client for commands: the pattern's address, rights and TLS, and our own ideas of waiting and resending. */
export function duplicateForCommands(pattern: Client, deadlines: ClientDeadlines): Client {
  return isCluster(pattern) ? duplicateCluster(pattern, deadlines, 'master') : pattern.duplicate(settings(deadlines));
}

/**
 * The same client, but for reads from replicas.
 *
 * @throws InvalidOptionError when nobody tells where replicas are
 */
export function duplicateForReplicaReads(pattern: Client, deadlines: ClientDeadlines): Client {
  if (isCluster(pattern)) return duplicateCluster(pattern, deadlines, 'slave');
  if (pattern.options.sentinels) return pattern.duplicate({ ...settings(deadlines), role: 'slave' });
  throw new InvalidOptionError(
    'readFrom',
    'replica',
    "'primary', because 'connection' is a single Redis: only Sentinel and Cluster tell where replicas are",
  );
}

function duplicateCluster(pattern: Cluster, deadlines: ClientDeadlines, scaleReads: 'master' | 'slave'): Cluster {
  const { redisOptions } = pattern.options;
  return pattern.duplicate([], {
    ...clusterSettings(deadlines),
    scaleReads,
    // Nodes that are never asked, such as most replicas, need no connection.
    redisOptions: { ...redisOptions, ...settings(deadlines), lazyConnect: true },
  });
}

/**
 * A client that listens: like the one for commands, or, of a Cluster, like one to any of its nodes, since what is published
 * on one reaches all. It doesn't reconnect: who listens takes another one, perhaps to another node.
 *
 * @returns `undefined` when no node of the Cluster is known
 */
export function duplicateForListening(commands: Client, deadlines: ClientDeadlines): Redis | undefined {
  const model = isCluster(commands) ? anyNode(commands) : commands;
  return model?.duplicate({
    lazyConnect: true,
    enableReadyCheck: false,
    enableOfflineQueue: false,
    retryStrategy: null,
    socketTimeout: longestSilence(deadlines),
  });
}

function anyNode(cluster: Cluster): Redis | undefined {
  const nodes = cluster.nodes();
  return nodes[Math.floor(Math.random() * nodes.length)];
}

function settings({ connectTimeout }: ClientDeadlines): RedisOptions {
  return {
    lazyConnect: false,
    // It becomes part of the namespace: ioredis puts it before channels too, but before no name inside a script.
    keyPrefix: '',
    // What is not sent now, or was lost, is sent again by us, and never after its deadline.
    enableOfflineQueue: false,
    // What it gathers isn't sent yet when we disconnect; and we gather commands ourselves.
    enableAutoPipelining: false,
    autoResendUnfulfilledCommands: false,
    // With these two, more than 0 would leave commands that were lost in flight without any answer.
    maxRetriesPerRequest: 0,
    commandTimeout: undefined,
    // `endSilent` does it, without a timer for each command.
    socketTimeout: undefined,
    keepAlive: 10_000,
    connectTimeout,
    disconnectTimeout: DISCONNECT_TIMEOUT,
    retryStrategy: retryDelay,
    enableReadyCheck: true,
    maxLoadingRetryTime: 500,
    // A primary became a replica and kept its connections: behind the same name there may be another primary now.
    reconnectOnError: (error) => error.message.includes('READONLY'),
    autoResubscribe: false,
    role: 'master',
    readOnly: false,
    monitor: false,
    stringNumbers: false,
  };
}

function clusterSettings({ commandTimeout }: ClientDeadlines): ClusterOptions {
  return {
    lazyConnect: false,
    keyPrefix: '',
    enableOfflineQueue: false,
    enableAutoPipelining: false,
    enableReadyCheck: true,
    clusterRetryStrategy: retryDelay,
    // 0 is "not at all": we send again ourselves.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    // It can't be turned off, but ends in time: after the 16 redirections that ioredis allows.
    retryDelayOnTryAgain: Math.floor(commandTimeout / 16),
  };
}
