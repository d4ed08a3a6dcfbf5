import { ERROR_OUTCOME } from '../core/outcome.js';
import type { LeadReply, LeadRequest } from '../core/store.js';
import type { Client } from './client.js';
import type { KeyNames } from './key-names.js';
import { milliseconds, runScript, type Script } from './script.js';

/*
 * Rechecks the entry and takes the lock, or registers a follower with whoever holds it.
 *
 * KEYS (cache)         lock, value, outcome
 * KEYS (lock service)  lock, fence
 * ARGV                 token, lease in ms, follower ('*' when it can't be woken, '' when it doesn't follow),
 *                      'since ' and the token of the outcome seen, for one who has waited, or '', SHA-1 of an unreadable entry or '',
 *                      moment until which an entry is fresh that is to be replaced early or '',
 *                      1 when the error of the last load counts, while a stale entry is there.
 *                      What is '' at the end may be left out.
 *
 * Replies
 *   hit, entry
 *   outcome, text
 *   leading, fencing token or nil
 *   waiting, holder's token, ms left, 1 when it will be woken, the token of the outcome that is there or ''
 */
const LEAD: Script = {
  name: 'stampedeLead',
  lua: `
local token, lease, follower = ARGV[1], ARGV[2], ARGV[3] or ''
local outcomeSeen, unreadable, refreshing, heedsError = ARGV[4] or '', ARGV[5] or '', ARGV[6], ARGV[7]
local isCache = #KEYS == 3

-- fresh, stale or missing. Redis's own time is asked for only where it decides.
local function freshness(entry)
  local freshUntil = entry and string.match(entry, '^1;(%d*);')
  if not freshUntil or (unreadable ~= '' and redis.sha1hex(entry) == unreadable) then return 'missing' end
  if freshUntil == '' then return 'fresh' end
  if freshUntil == refreshing then return 'stale' end
  local now = redis.call('TIME')
  return tonumber(freshUntil) > now[1] * 1000 + math.floor(now[2] / 1000) and 'fresh' or 'stale'
end

-- In microseconds, so that it grows even if the last one was lost. %.0f, because Lua would write 1.7e+15.
local function nextFence(last)
  local now = redis.call('TIME')
  local fence = string.format('%.0f', math.max((tonumber(last) or 0) + 1, now[1] * 1000000 + now[2]))
  redis.call('SET', KEYS[2], fence, 'PX', 86400000)
  return fence
end

local lock, value, outcome = unpack(redis.call('MGET', unpack(KEYS)))
local outcomeOf = outcome and string.match(outcome, '^[^,]*') or ''

if isCache then
  local state = freshness(value)
  if state == 'fresh' then return {'hit', value} end
  if outcome then
    local text = string.sub(outcome, #outcomeOf + 2)
    local isNew = outcomeSeen ~= '' and outcomeSeen ~= 'since ' .. outcomeOf
    local isHeeded = heedsError and state == 'stale' and string.sub(text, 1, 1) == '${ERROR_OUTCOME}'
    if isNew or isHeeded then return {'outcome', text} end
  end
end

local holder = lock and string.match(lock, '^[^,]*')
if not lock then
  local fence = not isCache and nextFence(value)
  redis.call('SET', KEYS[1], token, 'PX', lease)
  return {'leading', fence}
end
if holder == token then
  -- The same request, sent again because its reply was lost.
  local fence = not isCache and (value or nextFence(value))
  redis.call('PEXPIRE', KEYS[1], lease)
  return {'leading', fence}
end

local isRegistered = follower ~= '' and (
  string.find(lock .. ',', ',' .. follower .. ',', 1, true) ~= nil
  -- A full server refuses it; then the follower polls.
  or type(redis.pcall('APPEND', KEYS[1], ',' .. follower)) == 'number')
local wakes = isRegistered and follower ~= '*' and 1 or 0
return {'waiting', holder, redis.call('PTTL', KEYS[1]), wakes, outcomeOf}
`,
};

type Nil = null;
type RawReply = ['hit' | 'outcome', string] | ['leading', string | Nil] | ['waiting', string, number, 0 | 1, string];

export interface LeadArguments {
  readonly request: LeadRequest;
  /** The process to wake, or `*` for one that can't be woken. */
  readonly follower: string;
  /** SHA-1, in hex, of the entry's bytes that count as missing. */
  readonly unreadable: string | undefined;
}

export function lead(
  client: Client,
  names: KeyNames,
  { request, follower, unreadable = '' }: LeadArguments,
): Promise<LeadReply> {
  const { kind, key, token, lease, outcomeSeen, refreshing = '', heedsError = false, follow } = request;
  const args = [
    token,
    milliseconds(lease),
    follow ? follower : '',
    outcomeSeen === undefined ? '' : `since ${outcomeSeen}`,
    unreadable,
    String(refreshing),
    kind === 'cache' && heedsError ? '1' : '',
  ];
  return runScript(client, LEAD, keysOf(names, kind, key), args).then((reply) => readReply(reply as RawReply));
}

function keysOf(names: KeyNames, kind: LeadRequest['kind'], key: string): string[] {
  if (kind === 'cache') return names.scriptKeys(key);
  const { lock, fence } = names.lock(key);
  return [lock, fence];
}

function readReply(reply: RawReply): LeadReply {
  switch (reply[0]) {
    case 'hit':
    case 'outcome':
      return { is: reply[0], text: reply[1] };
    case 'leading': {
      const [is, fencingToken] = reply;
      return fencingToken === null ? { is } : { is, fencingToken: Number(fencingToken) };
    }
    case 'waiting': {
      const [is, token, timeLeft, wakes, outcomeSeen] = reply;
      // Below 0 only if somebody took its expiry from the lock: it doesn't end by itself.
      const leaseLeft = timeLeft < 0 ? Infinity : timeLeft;
      return { is, token, leaseLeft, wakes: wakes === 1, outcomeSeen };
    }
    default:
      throw new Error(`an unknown reply: ${JSON.stringify(reply)}`);
  }
}
