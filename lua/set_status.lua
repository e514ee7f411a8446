-- Sets the activity's status (RUNNING, CLOSED), and notes when it was closed.
-- Reservations made before keep their way.
-- KEYS 1 meta    ARGV 1 status
-- Returns 1, or 0 if the activity is not known.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'status', ARGV[1])
if ARGV[1] == 'CLOSED' then
  local t = redis.call('TIME')
  redis.call('HSETNX', KEYS[1], 'closed_at', string.format('%.0f', t[1] * 1000000 + t[2]))
else
  redis.call('HDEL', KEYS[1], 'closed_at')
end
return 1
