import type { Cluster, Redis } from 'ioredis';

/** A client of ioredis. What we use of it is the same in 5 and 6. */
export type Client = Redis | Cluster;

export function isCluster(client: Client): client is Cluster {
  return client.isCluster;
}

/** The server's own answer, and no trouble on the way to it. By its name: packages may be installed twice. */
export function isReplyError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}
