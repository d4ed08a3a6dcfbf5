/** Reads `INFO commandstats`: how many commands of an application Redis ran, without what only keeps house. */
export type CommandStats = Record<string, number>;

// Connections, subscriptions, the tests' own control, and what servers of a Cluster or a Sentinel send each other.
const HOUSEKEEPING = new Set(
  `acl asking auth client cluster command config debug flushall flushdb hello info latency memory monitor ping
   psubscribe psync punsubscribe quit readonly readwrite replconf replicaof reset role script select sentinel shutdown
   slaveof slowlog ssubscribe subscribe sunsubscribe sync unsubscribe`.split(/\s+/),
);

export function parseCommandStats(info: string): CommandStats {
  const stats: CommandStats = {};
  for (const [, name = '', calls] of info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
    // Subcommands come as `client|setinfo`.
    if (!HOUSEKEEPING.has(name.split('|')[0] ?? '')) stats[name] = Number(calls);
  }
  return stats;
}

export function totalCommands(stats: CommandStats): number {
  return Object.values(stats).reduce((sum, calls) => sum + calls, 0);
}
