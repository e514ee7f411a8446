-- Hands reservations whose send is due to one scanner: each is leased by
-- moving its next_retry_at into the future, so that several scanners share
-- the work, and a scanner that dies gives its work back.
-- KEYS 1 pending    ARGV 1 limit (<= 32) 2 backoff base us 3 backoff max us 4 resv key prefix
-- Returns an array of HGETALL replies.
local C = redis.call
local limit = tonumber(ARGV[1])
if limit > 32 then return redis.error_reply('ERR claim_due: limit of ' .. limit .. ' is over 32') end
local t = C('TIME')
local now = t[1] * 1000000 + t[2]
local due = C('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now), 'LIMIT', 0, limit)
local out = {}
for _, rid in ipairs(due) do
  local k = ARGV[4] .. rid
  local r = redis.pcall('HMGET', k, 'status', 'send_attempts')
  if r.err then -- of another type: a person's to read, and out of the others' way until then
    C('ZADD', KEYS[1], string.format('%.0f', now + tonumber(ARGV[3])), rid)
    out[#out + 1] = {'reservation_id', rid}
  elseif r[1] ~= 'PENDING_MESSAGE' then
    C('ZREM', KEYS[1], rid) -- decided or gone: nothing to send
  else
    local attempts = (tonumber(r[2] or '') or 0) + 1
    local wait = tonumber(ARGV[2]) * 2 ^ math.min(attempts - 1, 20)
    local next = string.format('%.0f', now + math.min(wait, tonumber(ARGV[3])))
    C('ZADD', KEYS[1], next, rid)
    C('HSET', k, 'send_attempts', attempts, 'next_retry_at', next)
    out[#out + 1] = C('HGETALL', k)
  end
end
return out
