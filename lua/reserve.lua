-- Judges up to 32 requests for one SKU, each as if alone (specification 6.5):
-- idempotency, user, activity, stock; then takes the stock and records the
-- reservation, the user mark, the request, the pending index and one change
-- log entry for the batch.
-- KEYS 1 meta 2 stock 3 soldout 4 pending 5 log, then n users, n requests, n reservations
-- ARGV 1 activity 2 sku 3 n 4 hold us (reserved_at + hold = expires_at) 5 first retry us,
--      then per request: request_id, user_id, payload_hash, reservation_id, message_id,
--      traceparent ('' where there is none)
-- Returns now us, expires_at us, activity version, then per request:
--      code, reservation_id, status, order_id ('' where there is none)
-- codes: CREATED REPLAYED CONFLICT DUPLICATE_USER NOT_OPEN SOLD_OUT
local C = redis.call
local aid, sid, n = ARGV[1], ARGV[2], tonumber(ARGV[3])
if n > 32 then return redis.error_reply('ERR reserve: batch of ' .. n .. ' is over 32') end
local t = C('TIME')
local now = t[1] * 1000000 + t[2]
local nows = string.format('%.0f', now)
local expires = string.format('%.0f', now + tonumber(ARGV[4]))
local retry = string.format('%.0f', now + tonumber(ARGV[5]))
local m = C('HMGET', KEYS[1], 'status', 'starts_at', 'ends_at', 'version', 'expire_at', 'open_at')
local known = m[1] and true or false
local open = m[1] == 'RUNNING' and now >= tonumber(m[2]) and now < tonumber(m[3])
local version, exat = m[4] or '0', m[5]
local g = C('MGET', KEYS[2], KEYS[3], unpack(KEYS, 6, 5 + n)) -- stock, flag, every user mark: one call
local left = tonumber(g[1] or '0')
local sellable = now >= tonumber(m[6] or '0') -- a returned unit waits until every gate can know of it
local old = C('EXISTS', unpack(KEYS, 6 + n, 5 + 2 * n)) > 0 -- was any request_id seen before? one call
local rprefix = string.sub(KEYS[5], 1, -4) .. 'resv:'
local users, reqs, out, pend, made, rids, uids = {}, {}, {nows, expires, version}, {}, {}, {}, {}

for i = 1, n do -- pass 1 decides, writes nothing
  local a = 6 * i - 1
  local ku, kr, ph = KEYS[5 + i], KEYS[5 + n + i], ARGV[a + 3]
  local code, rid, status, order = '', '', '', ''
  local p = reqs[kr]
  if not p and old then
    local h = C('HMGET', kr, 'payload_hash', 'reservation_id')
    if h[1] then p = h end
  end
  if p then
    if p[1] ~= ph then
      code = 'CONFLICT'
    else
      code, rid = 'REPLAYED', p[2]
      local r = p[3] and {'PENDING_MESSAGE'} or C('HMGET', rprefix .. rid, 'status', 'order_id', 'compensated_at')
      status, order = r[1] or '', r[2] or ''
      if r[3] then status = 'COMPENSATED' end
    end
  else
    rid = users[ku] or g[i + 2]
    if rid then code = 'DUPLICATE_USER'
    elseif not open then code, rid = 'NOT_OPEN', ''
    elseif left <= 0 or not sellable then code, rid = 'SOLD_OUT', ''
    else
      left = left - 1
      rid = ARGV[a + 4]
      code, status = 'CREATED', 'PENDING_MESSAGE'
      users[ku] = rid
      reqs[kr] = {ph, rid, true}
      made[#made + 1] = i
      pend[#pend + 1] = retry
      pend[#pend + 1] = rid
      rids[#rids + 1] = rid
      uids[#uids + 1] = ARGV[a + 2]
    end
  end
  local o = 4 * i
  out[o], out[o + 1], out[o + 2], out[o + 3] = code, rid, status, order
end

if #made > 0 then
  C('DECRBY', KEYS[2], #made) -- the stock first
  C('ZADD', KEYS[4], unpack(pend))
  for _, i in ipairs(made) do -- pass 2 writes
    local a = 6 * i - 1
    local rid = ARGV[a + 4]
    C('SET', KEYS[5 + i], rid, 'EXAT', exat)
    C('HSET', KEYS[5 + 2 * n + i], 'reservation_id', rid, 'message_id', ARGV[a + 5], 'request_id', ARGV[a + 1],
      'activity_id', aid, 'sku_id', sid, 'user_id', ARGV[a + 2], 'status', 'PENDING_MESSAGE',
      'payload_hash', ARGV[a + 3], 'reserved_at', nows, 'expires_at', expires, 'send_attempts', '0',
      'next_retry_at', retry, 'last_error_code', '', 'activity_version', version)
    if ARGV[a + 6] ~= '' then C('HSET', KEYS[5 + 2 * n + i], 'traceparent', ARGV[a + 6]) end
    C('HSET', KEYS[5 + n + i], 'payload_hash', ARGV[a + 3], 'code', 'QUEUED', 'reservation_id', rid)
    C('EXPIREAT', KEYS[5 + n + i], exat)
  end
  C('XADD', KEYS[5], '*', 'op', 'reserve', 'resv', table.concat(rids, ','), 'user', table.concat(uids, ','),
    'stock', left, 'at', nows)
end
if known and left <= 0 and not g[2] then C('SET', KEYS[3], '1', 'EXAT', exat) end
return out
