import { FOR_EVER } from '../core/durations.js';
import { type EndReply, type EndRequest, OUTCOME_KEPT, SHORT_LIVED, type StoredEntry } from '../core/store.js';
import type { Client } from './client.js';
import { type KeyNames, nearMessage } from './key-names.js';
import { milliseconds, runScript, type Script } from './script.js';
import { WAKE_UP } from './wake-up.js';

/*
 * Ends the lock of a token: stores the entry, deletes the lock, wakes the followers. What can fail is called by pcall and
 * in this order, since a script is not rolled back: no lock may be left by a full server or a user without channel rights.
 *
 * KEYS (cache)         lock, value, outcome
 * KEYS (lock service)  lock
 * ARGV                 token, prefix of the channels,
 *                      entry or '', ms to keep it or '' for ever, ms it is fresh or '' for as long as it is kept,
 *                      outcome or '', ms to keep it, followers or not, if there is an entry, or '',
 *                      channel and message for near caches, if it is no fill, or '': only what comes from elsewhere is told,
 *                      ms since it was sent first, if there is an entry and this is not the first time, or ''.
 *                      What is '' at the end may be left out.
 *
 * Replies
 *   held, 1 when it stored the entry, why it couldn't or nil
 *   refused
 */
const END: Script = {
  name: 'stampedeEnd',
  lua: `
${WAKE_UP}
local token, channelPrefix, entry, px, freshFor = ARGV[1], ARGV[2], ARGV[3] or '', ARGV[4] or '', ARGV[5] or ''
local outcome, holdOff, nearChannel, nearMessage = ARGV[6] or '', ARGV[7] or '', ARGV[8] or '', ARGV[9]
local sentFor = tonumber(ARGV[10])

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function unstamped(text)
  local rest = string.find(text, ';', 3, true)
  return string.sub(text, rest)
end

local function store()
  local text = entry
  if freshFor ~= '' then text = '1;' .. string.format('%.0f', now() + freshFor) .. unstamped(entry) end
  local reply
  if px == '' then reply = redis.pcall('SET', KEYS[2], text) else reply = redis.pcall('SET', KEYS[2], text, 'PX', px) end
  if reply.err then return 0, reply.err end
  if nearChannel ~= '' then redis.pcall('PUBLISH', nearChannel, nearMessage) end
  return 1, false
end

-- Whether what is there was stored since this was sent first: the same entry, and it ends when ours would.
local function isStored()
  local function endsWithOurs(left, duration)
    -- A millisecond more, for what is cut off.
    return left <= duration + 0 and left >= duration - sentFor - 1
  end
  local text, left = redis.pcall('GET', KEYS[2]), redis.call('PTTL', KEYS[2])
  if type(text) ~= 'string' then return false end
  if px == '' and left ~= -1 or px ~= '' and not endsWithOurs(left, px) then return false end
  if freshFor == '' then return text == entry end
  local freshUntil = string.match(text, '^1;(%d+);')
  return freshUntil and endsWithOurs(freshUntil - now(), freshFor) and unstamped(text) == unstamped(entry)
end

local lock = redis.call('GET', KEYS[1])
if not lock or tokenOf(lock) ~= token then
  if not sentFor or not isStored() then return {'refused'} end
  -- It was carried out, and its reply lost. Once more, so that replicas can be waited for.
  return {'held', store()}
end

local stored, problem = 0, false
if entry ~= '' then stored, problem = store() end

redis.call('DEL', KEYS[1])

local hasFollowers = #lock > #token
local fresh = freshFor ~= '' and freshFor or px
local willBeFound = stored == 1 and (fresh == '' or tonumber(fresh) >= ${SHORT_LIVED})
if outcome ~= '' and not willBeFound then
  local kept = hasFollowers and ${OUTCOME_KEPT}
  if holdOff ~= '' and redis.call('EXISTS', KEYS[2]) == 1 then kept = holdOff end
  if kept then redis.pcall('SET', KEYS[3], token .. ',' .. outcome, 'PX', kept) end
end

wakeFollowers(lock, channelPrefix)
return {'held', stored, problem}
`,
};

type RawReply = ['held', 0 | 1, string | null] | ['refused'];

/** @param sentFor milliseconds since the request was sent first; `undefined` when that is now */
export function end(client: Client, names: KeyNames, request: EndRequest, sentFor?: number): Promise<EndReply> {
  const { kind, key, token, entry, outcome = '', holdOff, claimed } = request;
  const keys = kind === 'cache' ? names.scriptKeys(key) : [names.lock(key).lock];
  const args = [token, names.channelPrefix, ...argumentsOf(entry), outcome, holdOff ? milliseconds(holdOff) : ''];
  args.push(...(claimed ? [names.nearChannel, nearMessage(key)] : ['', '']));
  if (entry && sentFor !== undefined) args.push(milliseconds(sentFor));
  return runScript(client, END, keys, args).then((reply) => readReply(reply as RawReply));
}

function readReply([is, stored, error]: RawReply): EndReply {
  if (is === 'refused') return { is };
  return { is, stored: stored === 1, ...(error && { error }) };
}

function argumentsOf(entry: StoredEntry | undefined): [text: string, px: string, freshFor: string] {
  if (!entry) return ['', '', ''];
  const { text, px, freshFor = Infinity } = entry;
  return [text, px <= FOR_EVER ? milliseconds(px) : '', freshFor <= FOR_EVER ? milliseconds(freshFor) : ''];
}
