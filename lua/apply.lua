-- Applies up to 32 decisions of PostgreSQL to the reservations they ended,
-- each once, however often it is delivered (invariant I9).
-- KEYS 1 meta 2 stock 3 soldout 4 pending 5 log, then n reservations
-- ARGV 1 n 2 reopen us (how long a returned unit waits for the gates), then per event:
--      kind ('order', also for set aside, or 'compensate'), status, order_id, operation_id, return ('0' or '1')
-- Returns per event: 1 applied, 0 already applied, -1 reservation not known here, or not readable
local C = redis.call
local n = tonumber(ARGV[1])
if n > 32 then return redis.error_reply('ERR apply: batch of ' .. n .. ' is over 32') end
-- A write refused after the stock's would be tried again, and the stock moved
-- again each time: keys of another type are refused before.
for i, want in pairs({'hash', 'string', [4] = 'zset', [5] = 'stream'}) do
  local is = C('TYPE', KEYS[i]).ok
  if is ~= want and is ~= 'none' then return redis.error_reply('WRONGTYPE apply: ' .. KEYS[i] .. ' is a ' .. is) end
end
local t = C('TIME')
local now = t[1] * 1000000 + t[2]
local nows = string.format('%.0f', now)
local exat = C('HGET', KEYS[1], 'expire_at')
local out = {}
for i = 1, n do
  local k, a = KEYS[5 + i], 2 + (i - 1) * 5
  local kind, status, order, op, ret = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5]
  local r = redis.pcall('HMGET', k, 'status', 'order_id', 'compensated_at', 'reservation_id', 'user_id')
  local done = 0
  if not (r[1] and r[4] and r[5]) then -- gone, of another type, or without what a return's entry names
    done = -1
  elseif kind == 'order' then
    if order ~= '' and not r[2] then -- set aside there is none
      C('HSET', k, 'order_id', order)
      done = 1
    end
    -- An order's end may be shown before its compensation, which alone moves stock.
    local ends = r[1] == 'ORDER_CREATED' and (status == 'CANCELLED' or status == 'EXPIRED')
    if r[1] == 'PENDING_MESSAGE' or r[1] == 'MESSAGE_SENT' or ends then
      C('HSET', k, 'status', status)
      done = 1
    end
  elseif not r[3] then
    if ret == '1' then -- the stock first
      local left = C('INCRBY', KEYS[2], 1)
      C('DEL', KEYS[3])
      local open_at = '0'
      if left == 1 then
        open_at = string.format('%.0f', now + tonumber(ARGV[2]))
        C('HSET', KEYS[1], 'open_at', open_at)
      end
      C('XADD', KEYS[5], '*', 'op', 'return', 'resv', r[4], 'user', r[5], 'stock', left, 'at', nows, 'open_at', open_at)
    end
    C('HSET', k, 'status', status, 'compensated_at', nows, 'compensation_id', op, 'returned', ret)
    if order ~= '' then C('HSET', k, 'order_id', order) end
    done = 1
  end
  if done >= 0 then
    C('ZREM', KEYS[4], r[4])
    if exat then C('EXPIREAT', k, exat) end -- decided: from here on the key may end
  end
  out[i] = done
end
return out
