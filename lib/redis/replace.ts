import type { ReplaceRequest } from '../core/store.js';
import type { Client } from './client.js';
import { type KeyNames, nearMessage } from './key-names.js';
import { milliseconds, runScript, type Script } from './script.js';
import { WAKE_UP } from './wake-up.js';

/*
 * Changes the entry from outside of a load: ends whoever's lease, wakes its holder and the followers, and tells near caches.
 *
 * KEYS   lock, value, outcome
 * ARGV   prefix of the channels, then one of
 *          evict, channel, message     deletes the entry
 *          expire, channel, message    marks it stale, unless it is, and keeps its expiry
 *          claim, token, ms            leaves it and takes the lock
 *        for evict and expire, 1 when replicas must confirm it, or nothing
 *
 * Replies nil
 */
const REPLACE: Script = {
  name: 'stampedeReplace',
  lua: `
${WAKE_UP}
local channelPrefix, action = ARGV[1], ARGV[2]
local token, lease = ARGV[3], ARGV[4]
local isConfirmed = ARGV[5] == '1'

local lock, entry
if action == 'expire' then
  -- MGET, because GET fails on a value that is no text.
  local found = redis.call('MGET', KEYS[1], KEYS[2])
  lock, entry = found[1], found[2]
else
  lock = redis.call('GET', KEYS[1])
end

if action == 'evict' then
  redis.call('DEL', unpack(KEYS))
elseif action == 'expire' then
  -- First, because a full server takes a write only after one that frees memory.
  redis.call('DEL', KEYS[1], KEYS[3])
  local freshUntil = entry and string.match(entry, '^1;(%d*);')
  if freshUntil then
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    -- What is stale already keeps its age.
    if freshUntil == '' or tonumber(freshUntil) > now then
      local rest = string.find(entry, ';', 3, true)
      redis.call('SET', KEYS[2], '1;' .. string.format('%.0f', now) .. string.sub(entry, rest), 'KEEPTTL')
    end
  end
elseif lock and tokenOf(lock) == token then
  -- The same claim, sent again because its reply was lost: its lock is not ended.
  redis.call('PEXPIRE', KEYS[1], lease)
  redis.call('DEL', KEYS[3])
  return false
else
  redis.call('SET', KEYS[1], token, 'PX', lease)
  redis.call('DEL', KEYS[3])
end

-- WAIT waits for what its own connection wrote. Where nothing was left to change, what another has changed may not have
-- reached the replicas yet; a write makes sure.
if isConfirmed then
  redis.call('SET', KEYS[3], '')
  redis.call('DEL', KEYS[3])
end

if lock then
  wakeHolder(lock, channelPrefix)
  wakeFollowers(lock, channelPrefix)
end
if action ~= 'claim' then redis.pcall('PUBLISH', ARGV[3], ARGV[4]) end
return false
`,
};

/** @param isConfirmed whether a `WAIT` will follow */
export async function replace(
  client: Client,
  names: KeyNames,
  { key, by }: ReplaceRequest,
  isConfirmed = false,
): Promise<void> {
  const action =
    typeof by === 'string'
      ? [by, names.nearChannel, nearMessage(key), ...(isConfirmed ? ['1'] : [])]
      : ['claim', by.claim, milliseconds(by.lease)];
  await runScript(client, REPLACE, names.scriptKeys(key), [names.channelPrefix, ...action]);
}
