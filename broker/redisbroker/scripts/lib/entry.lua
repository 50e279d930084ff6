-- entry: stored messages: storing them, and consuming most of them; rare/stored.lua has the rest.
-- A reference names a stored message: its stream id for lane 5, else id/lane; system messages are id/t (timer) and id/e (error)
-- in the lane sys; what was put back in its old place is id/b in the lane back. A stream id is <sequence number>-0, in the lane back
-- <sequence number>-<number it had first>, so no index from one to the other is needed.
-- Header (the entry's only field name): owner|body length|conversation seq|expires|enqueued|kind|message id|type|properties
-- and, for a dead letter, …|owner|cseq|seq|reason|description|time|delivery|poison|last error|group|source path.

-- What follows the kind in the header of a system message that the broker makes: no message id, its type, no properties.
local T_ERROR = '|http://schemas.microsoft.com/SQL/ServiceBroker/Error|'
local T_END = '|http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog|'
local T_TIMER = '|http://schemas.microsoft.com/SQL/ServiceBroker/DialogTimer|'

-- consume_range is consume for a range of ARGV whose refs are all of lane 5 (flag l): no table is built.
local function consume_range(c, i, j)
  local key = c.P .. 's:5'
  if c.kind == 'd' and rare.park then rare.park().settled(c, ARGV, i, j) end
  for k = i, j, 4000 do
    local e = math.min(k + 3999, j)
    call('XACK', key, 'w', unpack(ARGV, k, e))
    call('XDEL', key, unpack(ARGV, k, e))
    if c.kind ~= 'q' then call('ZREM', c.P .. 'ix', unpack(ARGV, k, e)) end
  end
  if i <= j then c.dirty = true end
end

-- number gives out the next sequence number, to an entry of lane or, without one, to something else. What it leaves out of a lane is
-- noted, so that whoever reads knows which numbers there are ours (see rare/foreign.lua).
local function number(c, lane)
  if c.tops or lane ~= '5' or c.lanes ~= '5' then leave_out(c, lane) end
  c.seq = c.seq + 1
  c.dirty = true
  return int(c.seq)
end

-- put stores one entry in a lane and returns its sequence number. What others wrote to the stream does not stand in our way: it becomes
-- dead letters. place: second part of the id, in the lane back only.
local function put(c, lane, header, body, place)
  if c.plain and (lane ~= '5' or byte(header, 1) ~= 124) then not_plain(c) end
  local id = number(c, lane)
  local r = pcall_('XADD', c.P .. 's:' .. lane, place and id .. '-' .. place or id, header, body)
  if type(r) == 'table' and r.err then
    if not find(r.err, 'smaller', 1, true) and not find(r.err, 'exhausted', 1, true) then error(r.err, 0) end
    c.seq = c.seq - 1
    clear_way(c, lane)
    id = number(c, lane)
    call('XADD', c.P .. 's:' .. lane, place and id .. '-' .. place or id, header, body)
  end
  c.bytes = c.bytes + #body
  return id
end

-- start_of is what stands behind the owner in the header of a message with a body of n bytes. It is made once for each length.
local starts = {}
local function start_of(n)
  local s = '|' .. int(n) .. '|'
  starts[n] = s
  return s
end

-- append_plain stores a plain or session message. owner: '' or s:<session>. ttl in ms or ''.
local function append_plain(c, now, owner, ttl, rest, body)
  local exp = ''
  local t = ttl ~= '' and tonumber(ttl) or 0
  if c.ttl > 0 and (t == 0 or c.ttl < t) then t = c.ttl end
  if t > 0 then
    exp = int(now + t)
    if not c.ttlf then call('HSET', c.P .. 'meta', 'ttlf', '1'); c.ttlf = true end
    not_plain(c)
  end
  local id = put(c, '5', owner .. (starts[#body] or start_of(#body)) .. '|' .. exp .. '|' .. the_time_text .. '|S|' .. rest, body)
  c.ready = c.ready + 1
  if c.asleep or c.actq then wake(c) end
  return id
end
