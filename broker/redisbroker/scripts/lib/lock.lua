-- lock: conversation groups. Values of the hash lock: <reader> held; <reader>+N held and N wait; -N free with N waiting;
-- ~N parked with N waiting; !N held up by a dead letter with N waiting (park), also with none; absent: free and nothing waits. N
-- counts the entries in the group's three lists.
local function lock_get(c, g)
  local v = c.lock[g]
  if v == nil then
    v = call('HGET', c.P .. 'lock', g)
    c.lock[g] = v
  end
  return v
end

local function lock_set(c, g, v)
  c.lock[g] = v
  c.lockd[g] = true
end

-- lock_parse returns holder ('' when nobody), mark ('-', '~', '!' or ''), number waiting.
local function lock_parse(v)
  if not v then return '', '', 0 end
  local b = byte(v, 1)
  if b == 45 then return '', '-', tonumber(sub(v, 2)) end
  if b == 126 or b == 33 then return '', sub(v, 1, 1), tonumber(sub(v, 2)) end
  local p = find(v, '+', 1, true)
  if p then return sub(v, 1, p - 1), '', tonumber(sub(v, p + 1)) end
  return v, '', 0
end

local function held_value(me, n)
  if n > 0 then return me .. '+' .. int(n) end
  return me
end

-- lane_of_system is the level of the conversation that a timer, an Error or a message put back belongs to; it does not stand in the
-- reference.
local function lane_of_system(c, ref)
  local h = read(c, ref)
  local owner = h and sub(h, 1, find(h, '|', 1, true) - 1) or ''
  local conv = c.cv[owner]
  if conv then return tonumber(conv.lane) end
  local s = call('HGET', c.P .. 'cv', owner)
  return s and tonumber(fields(s)[2]) or 0
end

-- level is the best priority of the conversations of g that have messages in its lists (RC-2), as far as the first 64 of each tell.
local function level(c, g)
  local best = 0
  for _, r in ipairs(call('LRANGE', c.P .. 'b:' .. g .. ':s', 0, 63)) do
    best = math.max(best, byte(r, -1) == 98 and lane_of_system(c, r) or tonumber(string.match(r, '/(%d+)$') or 5))
  end
  for _, l in ipairs({'t', 'e'}) do
    for _, r in ipairs(call('LRANGE', c.P .. 'b:' .. g .. ':' .. l, 0, 63)) do best = math.max(best, lane_of_system(c, r)) end
  end
  return best > 0 and best or 5
end

-- score orders ready groups: best priority first, then the oldest waiting entry. With ageing it is the time they wait since, a
-- level being worth c.age ms, so that nobody waits for ever.
local function score(c, g)
  local best, oldest = 5, nil
  for _, l in ipairs({'t', 'e', 's'}) do
    local r = call('LINDEX', c.P .. 'b:' .. g .. ':' .. l, 0)
    if r then
      local s = place_of(r)
      if not oldest or s < oldest then oldest = s end
    end
  end
  if c.lanes ~= '5' then best = level(c, g) end
  if c.age > 0 then return the_time + (10 - best) * c.age end
  return (10 - best) * 1e14 + (oldest or 0)
end

-- free releases a group that nobody holds any more, with n entries waiting in its lists. One that a dead letter of this script
-- parked stays where it is.
local function free(c, g, n)
  if c.parking and c.parking[g] then
    lock_set(c, g, '!' .. int(math.max(n, 0)))
    return
  end
  if n <= 0 then
    lock_set(c, g, false)
    return
  end
  lock_set(c, g, '-' .. int(n))
  call('ZADD', c.P .. 'ready', int(score(c, g)), g)
  wake(c)
end

-- raise moves a group that waits to the place that what was added to it gives it. It never falls back.
local function raise(c, g)
  local old, new = call('ZSCORE', c.P .. 'ready', g), score(c, g)
  if old and new < tonumber(old) then call('ZADD', c.P .. 'ready', int(new), g) end
end

-- added notes that n more entries wait in g's lists, whoever holds it.
local function added(c, g, n)
  local holder, mark, w = lock_parse(lock_get(c, g))
  if holder ~= '' then
    lock_set(c, g, held_value(holder, w + n))
  elseif mark == '' then
    free(c, g, n)
  else
    lock_set(c, g, mark .. int(w + n))
    if mark == '-' then
      if c.lanes ~= '5' then raise(c, g) end
      wake(c)
    end
  end
end

-- resting counts which of refs wait for a retry pause, by their consumer name.
local function resting(c, refs)
  local n = 0
  for _, r in ipairs(refs) do
    local key, id = lane_of(c, r)
    local p = call('XPENDING', key, 'w', id, id, '1')
    if p[1] and p[1][2] == 'retry' then n = n + 1 end
  end
  return n
end

-- front puts refs back at the front of their lists, each list in ascending order.
local function front(c, g, refs)
  local by = {t = {}, e = {}, s = {}}
  for _, r in ipairs(refs) do
    local l = by[list_of(r)]
    l[#l + 1] = r
  end
  for l, t in pairs(by) do
    if #t > 0 then
      table.sort(t, function(a, b) return place_of(a) > place_of(b) end)
      for i = 1, #t, 4000 do call('LPUSH', c.P .. 'b:' .. g .. ':' .. l, unpack(t, i, math.min(i + 3999, #t))) end
    end
  end
end

-- back_group puts a unit of g back under a consumer name and returns how many wait now. lock_set is the caller's.
local function back_group(c, g, refs, name)
  rename(c, refs, 1, #refs, name)
  front(c, g, refs)
  local _, _, w = lock_parse(lock_get(c, g))
  return w + #refs
end

-- back_plain makes plain entries wait again; bp keeps them by priority and number, so front is automatic.
local function back_plain(c, refs)
  rename(c, refs, 1, #refs, 'backlog')
  local a = {}
  for i, r in ipairs(refs) do
    a[2 * i - 1] = int(seq_of(r)); a[2 * i] = r
  end
  for i = 1, #a, 4000 do call('ZADD', c.P .. 'bp', unpack(a, i, math.min(i + 3999, #a))) end
  wake(c)
end

-- collapse drops timers that come back while another of the same conversation waits: two that nobody received are one (SM-11).
-- Returns the refs that are left.
local function collapse(c, refs)
  local left = {}
  for _, r in ipairs(refs) do
    local drop = false
    if list_of(r) == 't' then
      local head = read(c, r)
      local owner = head and sub(head, 1, find(head, '|', 1, true) - 1)
      local conv = owner and conv_get(c, owner)
      if conv then
        drop = conv.tp > 0
        if drop then conv.w = conv.w - 1 else conv.tp = 1 end
        c.cvd[owner] = true
      end
    end
    if drop then
      consume(c, {r}, 1, 1)
      call('HDEL', c.P .. 'att', r, 'e' .. r)
    else
      left[#left + 1] = r
    end
  end
  return left
end

-- back puts one unit back uncounted: its entries wait at the front, its group is released.
local function back(c, g, refs)
  c.locked = c.locked - #refs
  if g ~= '' then refs = collapse(c, refs) end
  c.ready = c.ready + #refs
  c.dirty = true
  if g == '' then
    back_plain(c, refs)
  else
    free(c, g, back_group(c, g, refs, 'backlog'))
  end
end
