-- plain: the turn of a queue that only plain messages are in. An XREADGROUP ahead of it in the same transaction has handed new ones to
-- the reader, so that no body is read by a script (that is most of what a message costs); this settles commits of plain units and
-- counts in what was read: as many as were ready, up to the COUNT of that XREADGROUP. The two are one step, the one that turn makes.
-- lib: none
-- KEYS 1: meta of the queue.
-- ARGV 1: now in ms, '' for the server's  2: reader  3: lease ms  4: number of this call  5: number of the last answered one that
--   settled or handed out something (both as in turn)  6: record of units still held after this call  7: bytes of committed bodies
--   8: plain refs committed, all of lane 5  9: number of free slots, the COUNT (nothing was read when there are none), then the refs
--   and the free slots.
-- RETURNS lines: OK, now, again, ready, next due, number of messages counted in; the i-th read is for the i-th free slot;
--   the greatest number that is ours. Or, when what
--   was read is filed and nothing was settled: NO, this turn needs the script turn; FENCED; NOENT.
-- It is written out, without the functions of scripts/lib: to make these would cost an idle queue's turn three times what it does.
local call, floor, fmt = redis.call, math.floor, string.format
local P, me, nrefs, nfree = string.sub(KEYS[1], 1, -5), ARGV[2], tonumber(ARGV[8]), tonumber(ARGV[9])

-- decline files what was read; what the reader holds otherwise is in its record and stays.
local function decline(answer, registered)
  if nfree == 0 then return answer end
  -- parts here: names base entry lock readers stored foreign waits notify giveback
  clock(ARGV[1])
  local c, recorded, read_now = open(P), {}, {}
  call('HDEL', P .. 'meta', '_')
  for _, u in ipairs(units(c, me)) do
    for _, r in ipairs(u.refs) do recorded[r] = true end
  end
  for _, e in ipairs(pcall_('XPENDING', P .. 's:5', 'w', '-', '+', '10000', me)) do
    if not recorded[e[1]] then read_now[#read_now + 1] = e[1] end
  end
  if #read_now > 0 then strays(c, read_now) end
  if not registered then pcall_('XGROUP', 'DELCONSUMER', P .. 's:5', 'w', me) end
  flush()
  return answer
end

local meta = call('HMGET', KEYS[1], 'status', 'plain', 'ready', 'locked', 'bytes', 'nextdue', 'chg', 'asleep', 'pcount', 'seq', 'tops')
if not meta[1] then return 'NOENT' end
local now = tonumber(ARGV[1])
if not now then
  local t = call('TIME')
  now = t[1] * 1000 + floor(t[2] / 1000)
end
local lease = call('ZSCORE', P .. 'rd', me)
if not lease or tonumber(lease) < now then return decline('FENCED', lease) end
if string.sub(call('HGET', P .. 'win', me) or '#0\n', 1, #ARGV[5] + 2) ~= '#' .. ARGV[5] .. '\n' then return decline('FENCED', true) end
-- What is ours ends at top (see rare/foreign.lua); where it has gaps every entry must be looked at.
local top = meta[10]
if meta[11] and meta[11] ~= '' then
  top = string.match(meta[11], '5:(%d+)') or top
  if string.find(meta[11], '!', 1, true) then meta[2] = '0' end
end
if meta[2] ~= '1' or (meta[1] ~= 'active' and meta[1] ~= 'send_disabled') or call('EXISTS', P .. 'bp') == 1 then
  return decline('NO', true)
end
local ready, key = tonumber(meta[3]), P .. 's:5'
local got = math.min(nfree, math.max(ready, 0))
-- The first write is one that Redis allows when it is full (M3).
for i = 10, 9 + nrefs, 4000 do
  call('XACK', key, 'w', unpack(ARGV, i, math.min(i + 3999, 9 + nrefs)))
  call('XDEL', key, unpack(ARGV, i, math.min(i + 3999, 9 + nrefs)))
end
local ms = tonumber(ARGV[3])
local renew, sleep = lease - now < ms / 2, nfree > 0 and got == 0 and meta[8] ~= '1'
if nrefs == 0 and (got > 0 or renew or sleep) then call('HDEL', KEYS[1], '_') end
if renew then call('ZADD', P .. 'rd', fmt('%d', now + ms), me) end
if got > 0 then
  call('HSET', P .. 'win', me, '#' .. ARGV[4] .. '\n' .. ARGV[6] .. '* ' .. table.concat(ARGV, ' ', 10 + nrefs, 9 + nrefs + got) .. '\n')
elseif nrefs > 0 then
  call('HSET', P .. 'win', me, '#' .. ARGV[4] .. '\n' .. ARGV[6])
end
local left = fmt('%d', ready - got)
if nrefs > 0 or got > 0 then
  call('HSET', KEYS[1], 'chg', fmt('%d', meta[7] + 1), 'ready', left, 'locked', fmt('%d', meta[4] + got - nrefs),
    'bytes', fmt('%d', meta[5] - ARGV[7]))
end
if nrefs > 0 and meta[9] ~= '0' then call('HSET', KEYS[1], 'pcount', '0') end
if sleep then call('HSET', KEYS[1], 'asleep', '1') end
return table.concat({'OK', fmt('%d', now), got == nfree and got > 0 and '1' or '0', left, meta[6], fmt('%d', got), top}, '\n')
