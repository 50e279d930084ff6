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
  local owner = h and owner_of(h) or ''
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
-- parked stays where it is, and one that lock tokens share goes to the next of them.
local function free(c, g, n)
  if c.passing and c.passing[g] then return rare.pass_lock(c, g, n) end
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

-- conv_get is the record of a conversation in cv (see rare/dialog.lua), or false.
local function conv_get(c, h)
  local v = c.cv[h]
  if v ~= nil then return v end
  local s = call('HGET', c.P .. 'cv', h)
  if s then
    local f = fields(s)
    v = {g = f[1], lane = f[2], st = f[3], snd = tonumber(f[4]), rcv = tonumber(f[5]), txn = tonumber(f[6]),
      w = tonumber(f[7]), tp = tonumber(f[8]), lost = f[9]}
  else
    v = false
  end
  c.cv[h] = v
  return v
end
