-- foreign: entries that others wrote into our streams. None of our counters ever had them; they become dead letters as they are, each with
-- a number of its own, wherever they are found. They are told by their ids, never by their form: Redis takes an entry only behind the
-- last one of its stream, so what others write is above the last number that we gave to that lane (its top), and whoever puts an entry
-- of ours there makes sure that nothing of others is left in between, or notes where (a gap).
-- meta.tops: <lane>:<top> of each lane that did not get the last number, and <lane>!<from>-<to> of each gap, joined by commas. The lanes sys
-- and back have no tops: what is ours there is filed as it comes, so what is unread is not.
local MANY = 200
local HUGE = 2 ^ 52 -- above that a number of ours would not be exact

local function number_in(id)
  return tonumber(string.match(id, '^%d+'))
end

local function read_tops(c)
  if c.top then return end
  c.top, c.gaps = {}, {}
  for l, n in string.gmatch(c.tops or '', '(%d+):(%d+)') do c.top[l] = tonumber(n) end
  for l, a, b in string.gmatch(c.tops or '', '(%d+)!(%d+)-(%d+)') do c.gaps[#c.gaps + 1] = {lane = l, from = tonumber(a), to = tonumber(b)} end
end

local function write_tops(c)
  local t = {}
  for l in string.gmatch(c.lanes, '[^,]+') do if c.top[l] then t[#t + 1] = l .. ':' .. int(c.top[l]) end end
  for _, g in ipairs(c.gaps) do t[#t + 1] = g.lane .. '!' .. int(g.from) .. '-' .. int(g.to) end
  c.tops = #t > 0 and table.concat(t, ',')
  c.tops_moved = true
  c.dirty = true
end

-- keep_tops notes the tops of all lanes but one before the count goes on.
local function keep_tops(c, lane)
  local moved = false
  for l in string.gmatch(c.lanes, '[^,]+') do
    if l ~= lane and not c.top[l] then
      c.top[l] = c.seq
      moved = true
    end
  end
  return moved
end

-- leave_out is for number: the next one goes to lane, or to none.
function leave_out(c, lane)
  read_tops(c)
  local top = c.top[lane]
  if top and #call('XREVRANGE', c.P .. 's:' .. lane, '+', int(top + 1), 'COUNT', '1') > 0 then clear_way(c, lane) end
  local moved = keep_tops(c, lane)
  if lane and c.top[lane] then
    c.top[lane] = nil
    moved = true
  end
  if moved then write_tops(c) end
end

-- strange tells whether an entry of a lane, by its id, was written by others.
function strange(c, lane, id)
  if lane == 'sys' or lane == 'back' then return false end
  read_tops(c)
  local n = number_in(id)
  if sub(id, -2) ~= '-0' or n > (c.top[lane] or c.seq) then return true end
  for _, g in ipairs(c.gaps) do
    if g.lane == lane and n >= g.from and n <= g.to then return true end
  end
  return false
end

-- strange_ref is strange for a reference.
function strange_ref(c, ref)
  local p = find(ref, '/', 1, true)
  if not p then return strange(c, '5', ref) end
  local l = sub(ref, p + 1)
  return l ~= 't' and l ~= 'e' and l ~= 'b' and strange(c, l, sub(ref, 1, p - 1))
end

-- dead_as_it_is makes a dead letter of an entry that has been taken out of its stream: its body is all raw fields as netstrings. In a
-- sub-queue it becomes one of the queue's dead letters, too. Its kind, M, is one that nothing else has.
function dead_as_it_is(c, lane, id, f)
  local q = c.kind == 'q' and c or open(sub(c.P, 1, -3))
  local dl, raw = open(q.P .. 'd:'), {}
  for i = 1, #f do raw[i] = #f[i] .. ':' .. f[i] .. ',' end
  local body, n = table.concat(raw), number(q, nil)
  local at = put(dl, '5', '|' .. int(#body) .. '|||' .. the_time_text .. '|M||||||' .. n .. '|MalformedEnvelope|the entry ' .. id ..
    ' of the stream ' .. sub(c.P, #q.P + 1) .. 's:' .. lane .. ' is no message of Parley; these are its raw fields|' .. the_time_text ..
    '|0|0|||' .. q.name, body)
  call('ZADD', dl.P .. 'ix', n, at .. '-0')
  call('HINCRBY', q.P .. 'reasons', 'MalformedEnvelope', 1)
  dl.ready = dl.ready + 1
  wake(dl)
end

-- expel moves entries of a lane, as a read gave them, to the dead-letter queue.
function expel(c, lane, list)
  local key = c.P .. 's:' .. lane
  for i = 1, #list do
    call('XACK', key, 'w', list[i][1])
    call('XDEL', key, list[i][1])
  end
  for i = 1, #list do dead_as_it_is(c, lane, list[i][1], list[i][2] or {}) end
  if #list > 0 then c.dirty = true end
end

-- expel_ref is expel for a reference, and reports whether there was something to move.
function expel_ref(c, ref)
  local key, id = lane_of(c, ref)
  local list = call('XRANGE', key, id, id)
  expel(c, sub(key, #c.P + 3), list)
  return #list > 0
end

-- last_id is the last id that a stream ever had.
local function last_id(key)
  local info = pcall_('XINFO', 'STREAM', key)
  for i = 1, info.err and 0 or #info, 2 do
    if info[i] == 'last-generated-id' then return tostring(info[i + 1]) end
  end
  local e = call('XREVRANGE', key, '+', '-', 'COUNT', '1')
  return e[1] and e[1][1] or '0-0'
end

-- set_back gives a stream the last id that it would have without what others wrote, whose ids leave no room for ours.
local function set_back(c, key)
  call('XSETID', key, int(c.seq) .. '-0')
  local groups = call('XINFO', 'GROUPS', key)
  for i = 1, groups[1] and #groups[1] or 0, 2 do
    if groups[1][i] == 'last-delivered-id' and number_in(groups[1][i + 1]) > c.seq then
      call('XGROUP', 'SETID', key, 'w', int(c.seq) .. '-0')
    end
  end
end

-- clear_way makes room in a lane for the entry that comes next: what others wrote behind ours becomes dead letters, or, when it is much,
-- is left, as a gap, to those who read.
function clear_way(c, lane)
  read_tops(c)
  local key = c.P .. 's:' .. lane
  local from, last = (c.top[lane] or c.seq) + 1, last_id(key)
  local list = call('XRANGE', key, int(from), '+', 'COUNT', int(MANY))
  local huge = number_in(last) >= HUGE
  local first = list
  if #list == MANY then
    local rest = call('XRANGE', key, '(' .. list[MANY][1], '+', 'COUNT', huge and '1000000' or '1')
    if huge then
      for i = 1, #rest do first[MANY + i] = rest[i] end
    elseif #rest > 0 and lane ~= 'sys' and lane ~= 'back' then
      c.gaps[#c.gaps + 1] = {lane = lane, from = from, to = number_in(last)}
    end
  end
  for i = 1, #list do
    call('XACK', key, 'w', list[i][1])
    call('XDEL', key, list[i][1])
  end
  if huge then
    set_back(c, key)
  elseif number_in(last) > c.seq then
    keep_tops(c, lane)
    c.seq = number_in(last)
  end
  write_tops(c)
  for i = 1, #list do dead_as_it_is(c, lane, list[i][1], list[i][2]) end
end

-- close_gaps forgets the gaps of a lane in which nothing is left.
local function close_gaps(c, lane)
  local left = {}
  for _, g in ipairs(c.gaps) do
    if g.lane ~= lane or #call('XRANGE', c.P .. 's:' .. lane, int(g.from), int(g.to), 'COUNT', '1') > 0 then left[#left + 1] = g end
  end
  if #left < #c.gaps then
    c.gaps = left
    write_tops(c)
  end
end

-- surely_ours reports whether all that a lane gave, in their order, is known to be ours by the last of it but for the form of ids.
function surely_ours(c, lane, list)
  read_tops(c)
  return #c.gaps == 0 and number_in(list[#list][1]) <= (c.top[lane] or c.seq)
end

-- ours_of returns those of the entries that a lane gave which are ours; the others become dead letters.
function ours_of(c, lane, list)
  local ours, others = {}, {}
  for i = 1, #list do
    local t = strange(c, lane, list[i][1]) and others or ours
    t[#t + 1] = list[i]
  end
  expel(c, lane, others)
  close_gaps(c, lane)
  return ours
end

-- file_own takes the entry that was put into the lane sys or back last off the unread. Whatever else is unread there is not ours; with no
-- id all is.
function file_own(c, lane, id)
  local r = pcall_('XREADGROUP', 'GROUP', 'w', 'backlog', 'COUNT', id and '1000000' or int(MANY), 'STREAMS', c.P .. 's:' .. lane, '>')
  if not r or r.err then return 0 end
  local others = {}
  for _, e in ipairs(r[1][2]) do if e[1] ~= id then others[#others + 1] = e end end
  expel(c, lane, others)
  return #others
end

-- beyond_top returns some entries of a lane that are above its top or in one of its gaps.
local function beyond_top(c, lane)
  local key = c.P .. 's:' .. lane
  if call('XLEN', key) == 0 then return {} end
  local list = call('XRANGE', key, int((c.top[lane] or c.seq) + 1), '+', 'COUNT', int(MANY))
  for _, g in ipairs(c.gaps) do
    if #list == 0 and g.lane == lane then list = call('XRANGE', key, int(g.from), int(g.to), 'COUNT', int(MANY)) end
  end
  return list
end

-- expel_some moves up to a few hundred entries that others wrote, wherever they are in a queue, and reports whether there were any.
function expel_some(c)
  local found = false
  read_tops(c)
  for _, lane in ipairs({'sys', 'back'}) do
    local key = c.P .. 's:' .. lane
    local length = call('XLEN', key)
    local p = length > 0 and pcall_('XPENDING', key, 'w')
    if p and not p.err and tonumber(p[1]) < length then found = file_own(c, lane, nil) > 0 or found end
  end
  for lane in string.gmatch(c.lanes, '[^,]+') do
    local list = beyond_top(c, lane)
    if #list > 0 then
      found = true
      expel(c, lane, list)
      close_gaps(c, lane)
    end
  end
  for _, k in ipairs({'d:', 't:'}) do
    local e = call('XREVRANGE', c.P .. k .. 's:5', '+', '-', 'COUNT', '1')
    if e[1] and number_in(e[1][1]) > tonumber(call('HGET', c.P .. k .. 'meta', 'seq') or 0) then
      local s = open(c.P .. k)
      if s then -- this script may have counted on
        read_tops(s)
        local list = beyond_top(s, '5')
        found = found or #list > 0
        expel(s, '5', list)
      end
    end
  end
  return found
end
