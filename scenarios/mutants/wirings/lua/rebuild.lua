-- Writes a SKU's stock anew, whatever is there.
-- KEYS 1 meta 2 stock 3 soldout 4 log    ARGV 6 stock, the others as warm.lua's
local C = redis.call
local t = C('TIME')
C('SET', KEYS[2], ARGV[6], 'KEEPTTL')
C('DEL', KEYS[3])
C('XADD', KEYS[4], '*', 'op', 'init', 'resv', '', 'user', '', 'stock', ARGV[6],
  'at', string.format('%.0f', t[1] * 1000000 + t[2]))
return 1
