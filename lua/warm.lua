-- Makes an activity's SKU known to Redis, once.
-- KEYS 1 meta 2 stock 3 soldout 4 log
-- ARGV 1 status 2 version 3 starts_at us 4 ends_at us 5 expire_at s 6 stock
-- Returns 1, or 0 if the activity is there already (nothing is changed).
local C = redis.call
if C('EXISTS', KEYS[1], KEYS[2], KEYS[4]) > 0 then return 0 end
local t = C('TIME')
C('SET', KEYS[2], ARGV[6], 'EXAT', ARGV[5])
C('DEL', KEYS[3])
C('XADD', KEYS[4], '*', 'op', 'init', 'resv', '', 'user', '', 'stock', ARGV[6],
  'at', string.format('%.0f', t[1] * 1000000 + t[2]))
C('EXPIREAT', KEYS[4], ARGV[5])
C('HSET', KEYS[1], 'status', ARGV[1], 'version', ARGV[2], 'starts_at', ARGV[3], 'ends_at', ARGV[4],
  'expire_at', ARGV[5], 'open_at', '0')
C('EXPIREAT', KEYS[1], ARGV[5])
return 1
