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

-- put stores one entry in a lane and returns its sequence number. A stream whose last id is above our count (somebody wrote to it, or
-- meta was lost) does not refuse us: the count goes on from there. place: second part of the id, in the lane back only.
local function put(c, lane, header, body, place)
  c.seq = c.seq + 1
  c.dirty = true
  if c.plain and (lane ~= '5' or byte(header, 1) ~= 124) then not_plain(c) end
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
