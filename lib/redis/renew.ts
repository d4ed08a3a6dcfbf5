import type { RenewReply, RenewRequest } from '../core/store.js';
import type { Client } from './client.js';
import type { KeyNames } from './key-names.js';
import { milliseconds, runScript, type Script } from './script.js';

/*
 * Extends the lease of a token, and of nobody else's.
 *
 * KEYS   lock
 * ARGV   token, lease in ms
 *
 * Replies held, other or gone
 */
const RENEW: Script = {
  name: 'stampedeRenew',
  isTimed: true,
  lua: `
local lock = redis.call('GET', KEYS[1])
if not lock then return 'gone' end
if string.match(lock, '^[^,]*') ~= ARGV[1] then return 'other' end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 'held'
`,
};

export function renew(client: Client, names: KeyNames, request: RenewRequest): Promise<RenewReply> {
  const { kind, key, token, lease } = request;
  return runScript(client, RENEW, [names.lockOf(kind, key)], [token, milliseconds(lease)]) as Promise<RenewReply>;
}
