-- Notes that the broker confirmed up to 32 messages. An observation only
-- (specification 8.2): a reservation already decided keeps its state.
-- KEYS 1 pending, then n reservations    ARGV n reservation ids
-- Returns how many were marked.
local C = redis.call
local n, marked = #ARGV, 0
if n > 32 then return redis.error_reply('ERR mark_sent: batch of ' .. n .. ' is over 32') end
for i = 1, n do
  local k = KEYS[1 + i]
  local r = C('HMGET', k, 'status', 'send_attempts')
  if r[1] == 'PENDING_MESSAGE' then
    if r[2] == '0' then C('HSET', k, 'status', 'MESSAGE_SENT', 'send_attempts', '1')
    else C('HSET', k, 'status', 'MESSAGE_SENT') end
    marked = marked + 1
  end
end
if n > 0 then C('ZREM', KEYS[1], unpack(ARGV)) end
return marked
