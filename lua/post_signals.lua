-- Posts figures of the asynchronous side for the access processes, each with
-- the time of its posting by this clock, the one its readers go by.
-- KEYS 1 signals    ARGV 1 ttl ms, then per figure: name, value
-- Returns how many were posted.
local n = (#ARGV - 1) / 2
if n > 16 then return redis.error_reply('ERR post_signals: ' .. n .. ' figures are over 16') end
local t = redis.call('TIME')
local now = string.format('%.0f', t[1] * 1000000 + t[2])
for i = 1, n do redis.call('HSET', KEYS[1], ARGV[2 * i], ARGV[2 * i + 1] .. '@' .. now) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return n
