/** The commands that we, our scripts and ioredis send, as ACL rules. docs/redis.md has the same. */
const ALWAYS =
  '+@connection +info +time +get +mget +set +del +append +pttl +pexpire +exists +eval +evalsha +publish +subscribe ' +
  '+unsubscribe +asking +cluster|slots +cluster|nodes +cluster|info';

/** @returns the rules that a user's rights to commands need */
export function rightsFor({ replicas, readFrom }: { replicas: number; readFrom: 'primary' | 'replica' }): string {
  return `${ALWAYS}${replicas > 0 ? ' +wait' : ''}${readFrom === 'replica' ? ' +readonly +readwrite' : ''}`;
}
