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
 *                      channel and message for near caches, if it is no fill: only what comes from elsewhere is told.
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
local outcome, holdOff, nearChannel, nearMessage = ARGV[6] or '', ARGV[7] or '', ARGV[8], ARGV[9]

local function stamp(text)
  local now = redis.call('TIME')
  local freshUntil = now[1] * 1000 + math.floor(now[2] / 1000) + freshFor
  local rest = string.find(text, ';', 3, true)
  return '1;' .. string.format('%.0f', freshUntil) .. string.sub(text, rest)
end

local lock = redis.call('GET', KEYS[1])
if not lock or tokenOf(lock) ~= token then return {'refused'} end

local stored, problem = 0, false
if entry ~= '' then
  if freshFor ~= '' then entry = stamp(entry) end
  local reply
  if px == '' then reply = redis.pcall('SET', KEYS[2], entry) else reply = redis.pcall('SET', KEYS[2], entry, 'PX', px) end
  if reply.err then problem = reply.err else stored = 1 end
end

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
if nearChannel and stored == 1 then redis.pcall('PUBLISH', nearChannel, nearMessage) end
return {'held', stored, problem}
`,
};

type RawReply = ['held', 0 | 1, string | null] | ['refused'];

export function end(client: Client, names: KeyNames, request: EndRequest): Promise<EndReply> {
  const { kind, key, token, entry, outcome = '', holdOff, claimed } = request;
  const keys = kind === 'cache' ? names.scriptKeys(key) : [names.lock(key).lock];
  const args = [token, names.channelPrefix, ...argumentsOf(entry), outcome, holdOff ? milliseconds(holdOff) : ''];
  if (claimed) args.push(names.nearChannel, nearMessage(key));
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
