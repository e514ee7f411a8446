-- Sets the activity's status (RUNNING, CLOSED). Reservations made before
-- keep their way.
-- KEYS 1 meta    ARGV 1 status
-- Returns 1, or 0 if the activity is not known.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'status', ARGV[1])
return 1
