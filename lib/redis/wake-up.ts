/**
 * Lua for the scripts that end a lock: `wakeFollowers(lock, channelPrefix)` and `wakeHolder(lock, channelPrefix)` publish the
 * token of the lock's text to who is named in it. By `pcall`: without the right to publish, what was done stays done, and
 * the others poll.
 */
export const WAKE_UP = `
local function tokenOf(lock)
  return string.match(lock, '^[^,]*')
end

local function wakeFollowers(lock, channelPrefix)
  -- Not '*', which stands for those who can't be woken.
  for process in string.gmatch(lock, ',(%w+)') do
    redis.pcall('PUBLISH', channelPrefix .. process, tokenOf(lock))
  end
end

local function wakeHolder(lock, channelPrefix)
  local holder = string.match(lock, '^%w+')
  if holder and not string.find(lock .. ',', ',' .. holder .. ',', 1, true) then
    redis.pcall('PUBLISH', channelPrefix .. holder, tokenOf(lock))
  end
end
`;
