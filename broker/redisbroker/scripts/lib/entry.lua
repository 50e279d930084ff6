-- entry: stored messages: references, lanes, headers, consuming and storing.
-- A reference names a stored message: its stream id for lane 5, else id/lane; system messages are id/t (timer) and id/e (error)
-- in the lane sys; what was put back in its old place is id/b in the lane back. A stream id is <sequence number>-0, in the lane back
-- <sequence number>-<number it had first>, so no index from one to the other is needed.
-- Header (the entry's only field name): owner|body length|conversation seq|expires|enqueued|kind|message id|type|properties
-- and, for a dead letter, …|owner|cseq|seq|reason|description|time|delivery|poison|last error|group|source path.
local function lane_of(c, ref)
  local p = find(ref, '/', 1, true)
  if not p then return c.P .. 's:5', ref end
  local l = sub(ref, p + 1)
  if l == 't' or l == 'e' then l = 'sys' elseif l == 'b' then l = 'back' end
  return c.P .. 's:' .. l, sub(ref, 1, p - 1)
end

local function list_of(ref)
  local p = find(ref, '/', 1, true)
  if not p then return 's' end
  local l = sub(ref, p + 1)
  if l == 't' or l == 'e' then return l end
  return 's'
end

local function seq_of(ref)
  local p = find(ref, '/', 1, true)
  return tonumber(sub(ref, 1, find(ref, '-', 1, true) - 1))
end

-- place_of is what orders the messages of one conversation: their numbers, and of one that was put back the number it had first.
local function place_of(ref)
  if byte(ref, -1) == 98 then return tonumber(string.match(ref, '-(%d+)/')) end
  return seq_of(ref)
end

-- bylane calls f(stream key, ids, n) once a lane for the refs of t[i..j], in chunks that unpack can take.
local function bylane(c, t, i, j, f)
  local lanes, order = {}, {}
  for k = i, j do
    local key, id = lane_of(c, t[k])
    local l = lanes[key]
    if not l then
      l = {n = 0}; lanes[key] = l; order[#order + 1] = key
    end
    l.n = l.n + 1; l[l.n] = id
    if l.n == 4000 then f(key, l, l.n); lanes[key] = nil; order[#order] = nil end
  end
  for _, key in ipairs(order) do if lanes[key] then f(key, lanes[key], lanes[key].n) end end
end

-- consume removes refs t[i..j] for good. Counters are the caller's.
local function consume(c, t, i, j)
  if i > j then return end
  bylane(c, t, i, j, function(key, ids, n)
    if c.kind == 'd' and park then park().settled(c, ids, 1, n) end
    call('XACK', key, 'w', unpack(ids, 1, n))
    call('XDEL', key, unpack(ids, 1, n))
    if c.kind ~= 'q' then call('ZREM', c.P .. 'ix', unpack(ids, 1, n)) end
  end)
  c.dirty = true
end

-- consume_range is consume for a range of ARGV whose refs are all of lane 5 (flag l): no table is built.
local function consume_range(c, i, j)
  local key = c.P .. 's:5'
  if c.kind == 'd' and park then park().settled(c, ARGV, i, j) end
  for k = i, j, 4000 do
    local e = math.min(k + 3999, j)
    call('XACK', key, 'w', unpack(ARGV, k, e))
    call('XDEL', key, unpack(ARGV, k, e))
    if c.kind ~= 'q' then call('ZREM', c.P .. 'ix', unpack(ARGV, k, e)) end
  end
  if i <= j then c.dirty = true end
end

-- rename gives entries to another consumer name without counting a delivery (M4).
local function rename(c, t, i, j, name)
  bylane(c, t, i, j, function(key, ids, n)
    local a = {key, 'w', name, 0}
    for k = 1, n do a[k + 4] = ids[k] end
    a[n + 5] = 'JUSTID'
    call('XCLAIM', unpack(a, 1, n + 5))
  end)
end

-- read returns header and body of one entry, or nil when the entry is gone.
local function read(c, ref)
  local key, id = lane_of(c, ref)
  local r = call('XRANGE', key, id, id)
  if not r[1] then return nil end
  local f = r[1][2]
  return f[1], f[2], f
end

-- fields splits a header, or any record, at '|'.
local function fields(h)
  local t, n, i = {}, 0, 1
  while true do
    local p = find(h, '|', i, true)
    n = n + 1
    if not p then
      t[n] = sub(h, i)
      return t, n
    end
    t[n] = sub(h, i, p - 1)
    i = p + 1
  end
end

local function expired(h, now)
  local p = find(h, '|', 1, true)
  p = find(h, '|', p + 1, true)
  p = find(h, '|', p + 1, true)
  local q = find(h, '|', p + 1, true)
  if q == p + 1 then return false end
  return tonumber(sub(h, p + 1, q - 1)) <= now
end

local function blen(h)
  local p = find(h, '|', 1, true)
  local q = find(h, '|', p + 1, true)
  return tonumber(sub(h, p + 1, q - 1)) or 0
end

-- put stores one entry in a lane and returns its sequence number. A stream whose last id is above our count (somebody wrote to it, or
-- meta was lost) does not refuse us: the count goes on from there. place: second part of the id, in the lane back only.
local function put(c, lane, header, body, place)
  c.seq = c.seq + 1
  c.dirty = true
  local id = int(c.seq)
  local r = pcall_('XADD', c.P .. 's:' .. lane, place and id .. '-' .. place or id, header, body)
  if type(r) == 'table' and r.err then
    if not find(r.err, 'smaller', 1, true) then error(r.err, 0) end
    local last = 0
    for l in string.gmatch(lanes_of(c), '[^,]+') do
      local e = call('XREVRANGE', c.P .. 's:' .. l, '+', '-', 'COUNT', '1')
      if e[1] then last = math.max(last, tonumber(string.match(e[1][1], '^%d+') or 0)) end
      local info = pcall_('XINFO', 'STREAM', c.P .. 's:' .. l)
      if type(info) == 'table' and not info.err then
        for i = 1, #info, 2 do
          if info[i] == 'last-generated-id' then last = math.max(last, tonumber(string.match(tostring(info[i + 1]), '^%d+') or 0)) end
        end
      end
    end
    c.seq = last + 1
    id = int(c.seq)
    call('XADD', c.P .. 's:' .. lane, place and id .. '-' .. place or id, header, body)
  end
  c.bytes = c.bytes + #body
  return id
end

-- plain stores a plain or session message. owner: '' or s:<session>. ttl in ms or ''.
local function append_plain(c, now, owner, ttl, rest, body)
  local exp = ''
  local t = tonumber(ttl) or 0
  if c.ttl > 0 and (t == 0 or c.ttl < t) then t = c.ttl end
  if t > 0 then
    exp = int(now + t)
    if not c.ttlf then call('HSET', c.P .. 'meta', 'ttlf', '1'); c.ttlf = '1' end
  end
  local id = put(c, '5', owner .. '|' .. int(#body) .. '||' .. exp .. '|' .. the_time_text .. '|S|' .. rest, body)
  c.ready = c.ready + 1
  if c.asleep or c.actq then wake(c) end
  return id
end

-- schedule keeps a message until due; it has its sequence number already.
local function append_scheduled(c, due, owner, ttl, rest, body)
  c.seq = c.seq + 1
  local id = int(c.seq)
  call('HSET', c.P .. 'schm', id, owner .. '\n' .. ttl .. '\n' .. rest .. '\n' .. body)
  call('ZADD', c.P .. 'sch', int(due), id)
  c.scheduled = c.scheduled + 1
  c.dirty = true
  setdue(c, due)
  return id
end

-- bury moves one entry, already consumed by the caller, to the dead-letter queue of c.
local function bury(c, now, ref, header, body, reason, desc, d, p, last, group)
  local dl = open(c.P .. 'd:')
  local f, n = fields(header)
  local owner, cseq = f[1], f[3]
  f[1] = ''; f[3] = ''; f[4] = ''
  f[10] = owner; f[11] = cseq; f[12] = int(seq_of(ref)); f[13] = reason; f[14] = desc; f[15] = int(now)
  f[16] = int(d); f[17] = int(p); f[18] = last; f[19] = group or ''; f[20] = c.name
  for i = n + 1, 9 do f[i] = '' end
  local id = put(dl, '5', table.concat(f, '|', 1, 20), body)
  call('ZADD', dl.P .. 'ix', f[12], id .. '-0')
  call('HINCRBY', c.P .. 'reasons', reason, 1)
  dl.ready = dl.ready + 1
  wake(dl)
end

-- netstrings keeps the raw fields of a broken entry as its dead body.
local function raw(f)
  local t = {}
  for i = 1, #f do t[i] = #f[i] .. ':' .. f[i] .. ',' end
  return table.concat(t)
end

local function malformed(c, now, ref, f)
  local body = raw(f)
  bury(c, now, ref, '|' .. #body .. '||||S|||', body, 'MalformedEnvelope',
    'the entry has no envelope of ours; its raw fields are the body', 0, 0, '', '')
end
