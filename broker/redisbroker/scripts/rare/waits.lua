-- waits: whether a reader would find something, when the counters do not tell.
-- unread_of returns the next n unread entries of a lane; nil when that cannot be told.
function unread_of(key, n)
  local groups = pcall_('XINFO', 'GROUPS', key)
  if type(groups) ~= 'table' or groups.err or not groups[1] then return nil end
  for i = 1, #groups[1], 2 do
    if groups[1][i] == 'last-delivered-id' then return call('XRANGE', key, '(' .. groups[1][i + 1], '+', 'COUNT', int(n)) end
  end
end

-- anything_waits asks the places themselves, whatever the counters say.
function anything_waits(c)
  if call('EXISTS', c.P .. 'ready', c.P .. 'bp') > 0 then return true end
  for lane in string.gmatch(c.lanes, '[^,]+') do
    local key = c.P .. 's:' .. lane
    if call('XLEN', key) > 0 then
      local list = unread_of(key, 1)
      if not list or #list > 0 then return true end
    end
  end
  return false
end

-- deliverable reports whether something of c can be handed out. Of what is unread it looks at the next few of each lane.
function deliverable(c)
  if c.ready <= 0 then return false end
  if call('ZCARD', c.P .. 'ready') > 0 or call('ZCARD', c.P .. 'bp') > 0 then return true end
  local looks = 50

  -- unlocked reports whether the owner of an unread entry is free to be handed out: the entry of a locked group is only filed.
  local function unlocked(owner)
    if owner == '' then return true end
    local g = owner
    if byte(owner, 2) ~= 58 then
      local conv = c.cv[owner] -- what this script changes is not written yet
      local s = conv == nil and call('HGET', c.P .. 'cv', owner)
      g = conv and conv.g or s and fields(s)[1]
      if not g then return false end -- it has ended
    end
    local v = c.lock[g]
    if v == nil then v = call('HGET', c.P .. 'lock', g) end
    return not v
  end

  for lane in string.gmatch(c.lanes, '[^,]+') do
    local list = unread_of(c.P .. 's:' .. lane, looks)
    if not list or #list == looks then return true end
    for _, e in ipairs(list) do
      local h = e[2][1]
      local p = h and find(h, '|', 1, true)
      if not p or unlocked(sub(h, 1, p - 1)) then return true end
    end
  end
  return false
end
