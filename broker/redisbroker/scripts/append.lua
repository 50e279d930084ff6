-- append: store messages of one producer in one queue, in order, all or none.
-- lib: none
-- KEYS 1: meta of the queue.
-- ARGV 1: now in ms, '' for the server's  2: producer name  3: counter of the first message of this call  4: number of messages,
--   then for each: owner ('' or s:<session>), ttl ms or '', delay ms or '', absolute due ms or '', rest, body.
-- RETURNS OK and the sequence number of the first, or for a repeat SAME and that number; OFF; NOENT; DUP when the counter is
--   older than the last call of this producer.
-- The counter of a producer unused for an hour is dropped when a new one comes.
-- What nearly every call does is written out, without the functions of scripts/lib: to make these takes longer than to store a message.
local call, fmt = redis.call, string.format
local P, producer, first, n = string.sub(KEYS[1], 1, -5), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

-- anything does any call.
local function anything()
  -- parts here: names base entry producers stored scheduled foreign waits notify
  local now = clock(ARGV[1])
  local c = open(P)
  if not c then return {'NOENT'} end
  local last = call('HGET', c.P .. 'pc', producer)
  if last then
    local f = fields(last)
    if tonumber(f[1]) == first then
      pcall_('HSET', c.P .. 'pc', producer, last) -- a server may let a WAIT behind a repeat wait for its own writes only
      return {'SAME', f[2]}
    end
    if tonumber(f[1]) > first then return {'DUP'} end
  end
  if not can_send(c) then return {'OFF', c.status} end
  if not last then forget_producers(c, now) end
  local from = c.seq + 1
  local at = 5
  for i = 1, n do
    local delay, due = ARGV[at + 2], ARGV[at + 3]
    local id
    if delay ~= '' or due ~= '' then
      id = append_scheduled(c, due ~= '' and math.max(tonumber(due), now) or now + tonumber(delay), ARGV[at], ARGV[at + 1], ARGV[at + 4], ARGV[at + 5])
    else
      id = append_plain(c, now, ARGV[at], ARGV[at + 1], ARGV[at + 4], ARGV[at + 5])
    end
    if i == 1 then from = tonumber(id) end
    at = at + 6
  end
  call('HSET', c.P .. 'pc', producer, int(first) .. '|' .. int(from) .. '|' .. int(now))
  flush()
  return {'OK', int(from)}
end

-- The usual call is a new one of a known producer to an active queue without a time to live whose readers nobody calls from outside, of
-- messages that are due now and do not expire.
local meta = call('HMGET', KEYS[1], 'status', 'seq', 'ready', 'bytes', 'chg', 'asleep', 'ttl', 'actq', 'plain', 'tops')
local last = call('HGET', P .. 'pc', producer)
if meta[1] ~= 'active' or meta[7] ~= '0' or meta[8] ~= '' or not last or tonumber(string.match(last, '^%d+')) >= first or
  (meta[10] and meta[10] ~= '') then
  return anything()
end
for at = 6, 6 * n, 6 do
  if ARGV[at] ~= '' or ARGV[at + 1] ~= '' or ARGV[at + 2] ~= '' then return anything() end
end

local now = tonumber(ARGV[1])
if not now then
  local t = call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end
local time = fmt('%d', now)
local from, bytes, key, starts, sessions = meta[2] + 1, tonumber(meta[4]), P .. 's:5', {}, false
for i = 0, n - 1 do
  local at = 5 + 6 * i
  local owner, body = ARGV[at], ARGV[at + 5]
  local start = starts[#body]
  if not start then -- once for each length
    start = fmt('|%d|||', #body) .. time .. '|S|'
    starts[#body] = start
  end
  local r = redis.pcall('XADD', key, fmt('%d', from + i), owner .. start .. ARGV[at + 4], body)
  if type(r) == 'table' then -- somebody else wrote to the stream, or the server is full: the first is refused, and nothing is written
    if i > 0 then error(r.err, 0) end
    return anything()
  end
  if owner ~= '' then sessions = true end
  bytes = bytes + #body
end
local number = fmt('%d', from)
call('HSET', P .. 'pc', producer, fmt('%d|', first) .. number .. '|' .. time)
call('HSET', KEYS[1], 'chg', fmt('%d', meta[5] + 1), 'seq', fmt('%d', from + n - 1), 'ready', fmt('%d', meta[3] + n),
  'bytes', fmt('%d', bytes), 'asleep', '0')
if sessions and meta[9] == '1' then call('HSET', KEYS[1], 'plain', '0') end
if meta[6] == '1' then
  redis.pcall('PUBLISH', 'parley:' .. string.match(P, '^{([^/]*)/') .. ':wake', 'w ' .. P)
end
return {'OK', number}
