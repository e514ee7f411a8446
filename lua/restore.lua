-- Puts back what Redis lost of a reservation that PostgreSQL has decided: so
-- that its owner is told, and cannot buy again. It writes over nothing, and
-- never touches stock, pending index or change log.
-- KEYS 1 meta 2 user mark 3 request 4 reservation
-- ARGV 1 reservation_id 2 payload_hash 3 set the mark ('0' or '1')
--      4 fields and values of the reservation, none: leave it
-- Returns how many keys were put back, or -1 if the activity is not known.
local C = redis.call
local m = C('HMGET', KEYS[1], 'expire_at', 'version')
if not m[1] then return -1 end
local restored = 0
if ARGV[3] == '1' and C('SET', KEYS[2], ARGV[1], 'NX', 'EXAT', m[1]) then restored = restored + 1 end
if C('EXISTS', KEYS[3]) == 0 then
  C('HSET', KEYS[3], 'payload_hash', ARGV[2], 'code', 'QUEUED', 'reservation_id', ARGV[1])
  C('EXPIREAT', KEYS[3], m[1])
  restored = restored + 1
end
if #ARGV > 3 and C('EXISTS', KEYS[4]) == 0 then
  C('HSET', KEYS[4], 'activity_version', m[2] or '0', unpack(ARGV, 4))
  C('EXPIREAT', KEYS[4], m[1])
  restored = restored + 1
end
return restored
