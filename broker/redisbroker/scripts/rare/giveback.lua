-- giveback: putting units back where they waited.
-- raise moves a group that waits to the place that what was added to it gives it. It never falls back.
function raise(c, g)
  local old, new = call('ZSCORE', c.P .. 'ready', g), score(c, g)
  if old and new < tonumber(old) then call('ZADD', c.P .. 'ready', int(new), g) end
end

-- resting counts which of refs wait for a retry pause, by their consumer name.
function resting(c, refs)
  local n = 0
  for _, r in ipairs(refs) do
    local key, id = lane_of(c, r)
    local p = call('XPENDING', key, 'w', id, id, '1')
    if p[1] and p[1][2] == 'retry' then n = n + 1 end
  end
  return n
end

-- front puts refs back at the front of their lists, each list in ascending order.
function front(c, g, refs)
  local by = {t = {}, e = {}, s = {}}
  for _, r in ipairs(refs) do
    local l = by[list_of(r)]
    l[#l + 1] = r
  end
  for l, t in pairs(by) do
    if c.passing and c.passing[''] then
      for _, r in ipairs(t) do rare.in_order(c.P .. 'b:' .. g .. ':' .. l, r) end
    elseif #t > 0 then
      table.sort(t, function(a, b) return place_of(a) > place_of(b) end)
      for i = 1, #t, 4000 do call('LPUSH', c.P .. 'b:' .. g .. ':' .. l, unpack(t, i, math.min(i + 3999, #t))) end
    end
  end
end

-- back_group puts a unit of g back under a consumer name and returns how many wait now. lock_set is the caller's.
function back_group(c, g, refs, name)
  rename(c, refs, 1, #refs, name)
  front(c, g, refs)
  local _, _, w = lock_parse(lock_get(c, g))
  return w + #refs
end

-- back_plain makes plain entries wait again; bp keeps them by priority and number, so front is automatic.
function back_plain(c, refs)
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
function collapse(c, refs)
  local left = {}
  for _, r in ipairs(refs) do
    local drop = false
    if list_of(r) == 't' then
      local head = read(c, r)
      local owner = head and owner_of(head)
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
function back(c, g, refs)
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
