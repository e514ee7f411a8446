-- Notes why the last send of up to 32 reservations was not confirmed
-- (specification 8.1, last_error_code). A reservation that is not pending
-- keeps what it says.
-- KEYS n reservations    ARGV 1 error code
-- Returns how many were noted.
local C = redis.call
if #KEYS > 32 then return redis.error_reply('ERR note_failure: batch of ' .. #KEYS .. ' is over 32') end
local noted = 0
for _, k in ipairs(KEYS) do
  if C('HGET', k, 'status') == 'PENDING_MESSAGE' then
    C('HSET', k, 'last_error_code', ARGV[1])
    noted = noted + 1
  end
end
return noted
