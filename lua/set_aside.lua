-- Writes into Redis that PostgreSQL set up to 32 reservations aside for a
-- person to look at: nobody sends them any more. Decided otherwise they keep
-- their state.
-- KEYS 1 meta 2 pending, then n reservations    ARGV n reservation ids
-- Returns how many were changed.
local C = redis.call
local n, changed = #ARGV, 0
if n > 32 then return redis.error_reply('ERR set_aside: batch of ' .. n .. ' is over 32') end
local exat = C('HGET', KEYS[1], 'expire_at')
for i = 1, n do
  local k = KEYS[2 + i]
  local status = C('HGET', k, 'status')
  if status == 'PENDING_MESSAGE' or status == 'MESSAGE_SENT' then
    C('HSET', k, 'status', 'SET_ASIDE')
    if exat then C('EXPIREAT', k, exat) end -- decided: from here on the key may end
    changed = changed + 1
  end
end
if n > 0 then C('ZREM', KEYS[2], unpack(ARGV)) end
return changed
