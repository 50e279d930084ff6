-- readers: what a reader name holds, and giving it back.
-- pending returns, lane by lane, the refs that consumer name holds: ref → true. Bounded by what one reader may hold.
local function pending(c, name)
  local t = {}
  for lane in string.gmatch(lanes_of(c), '[^,]+') do
    local r = pcall_('XPENDING', c.P .. 's:' .. lane, 'w', '-', '+', '10000', name)
    if type(r) == 'table' and not r.err then
      for _, e in ipairs(r) do
        local id = e[1]
        if lane == 'sys' then
          local head = read(c, id .. '/t')
          local k = head and fields(head)[6] == 'T' and 't' or 'e'
          t[#t + 1] = id .. '/' .. k
        elseif lane == 'back' then
          t[#t + 1] = id .. '/b'
        elseif lane == '5' then
          t[#t + 1] = id
        else
          t[#t + 1] = id .. '/' .. lane
        end
      end
    end
  end
  return t
end

-- units parses a reader's record: slot refs group, one unit a line. The line '*' slot slot … stands for the plain messages that plain
-- counted in: what the reader holds in lane 5 beside the other lines, oldest first. When there are fewer, missing says how many.
local function units(c, name)
  local list, new, recorded = {}, nil, {}
  for line in string.gmatch(call('HGET', c.P .. 'win', name) or '', '[^\n]+') do
    local s, refs, g = string.match(line, '^(%d+) (%S+) (.*)$')
    if s then
      local t = {}
      for r in string.gmatch(refs, '[^,]+') do
        t[#t + 1] = r
        recorded[r] = true
      end
      list[#list + 1] = {slot = s, refs = t, g = g}
    elseif byte(line, 1) == 42 then
      new = sub(line, 3)
    end
  end
  list.missing = 0
  if not new then return list end
  local r = pcall_('XPENDING', c.P .. 's:5', 'w', '-', '+', '10000', name)
  local i = 0
  for k = #r, 1, -1 do -- what others wrote was never counted in
    if strange(c, '5', r[k][1]) then expel_ref(c, table.remove(r, k)[1]) end
  end
  for s in string.gmatch(new, '%d+') do
    repeat i = i + 1 until not r[i] or not recorded[r[i][1]]
    if r[i] then
      list[#list + 1] = {slot = s, refs = {r[i][1]}, g = ''}
    else
      list.missing = list.missing + 1
    end
  end
  return list
end

-- group_of is the group of a stored message by its header: '' of a plain one, nil when its conversation has ended.
local function group_of(c, head)
  local owner = owner_of(head)
  if owner == '' or sub(owner, 1, 2) == 's:' then return owner end
  local conv = conv_get(c, owner)
  return conv and conv.g or nil
end

-- strays files what was read ahead of a script that did not count it in (see plain.lua), as a script that reads would have.
local function strays(c, refs)
  local plain = {}
  for _, r in ipairs(refs) do
    local head, body = read(c, r)
    local g = head and group_of(c, head)
    if strange_ref(c, r) then
      expel_ref(c, r)
    elseif not g then -- its end took it off the counters
      consume(c, {r}, 1, 1)
      c.bytes = c.bytes - #(body or '')
    elseif g == '' then
      plain[#plain + 1] = r
    else
      rename(c, {r}, 1, 1, 'backlog')
      call('RPUSH', c.P .. 'b:' .. g .. ':s', r)
      added(c, g, 1)
    end
  end
  if #plain > 0 then back_plain(c, plain) end
  c.dirty = true
end

-- back_from gives back what name held of g. When the group is not its own (only by hand, or by a host of another version), nobody's
-- lock is touched.
local function back_from(c, name, g, refs)
  if lock_parse(lock_get(c, g)) == name then return back(c, g, refs) end
  c.locked = c.locked - #refs
  refs = collapse(c, refs)
  c.ready = c.ready + #refs
  if #refs == 0 then return end
  rename(c, refs, 1, #refs, 'backlog')
  front(c, g, refs)
  added(c, g, #refs)
end

-- orphans gives back, uncounted, what a name holds but does not know (a lost reply, H3). What stands in no line of its record was
-- never counted as locked.
local function orphans(c, now, name, known, list)
  local plain, by, order, accounted, stray = {}, {}, {}, {}, {}
  for _, u in ipairs(list) do
    for _, r in ipairs(u.refs) do accounted[r] = true end
  end
  for _, r in ipairs(pending(c, name)) do
    if not accounted[r] then
      stray[#stray + 1] = r
    elseif not known[r] then
      local head = read(c, r)
      local g = head and group_of(c, head)
      if not g then
        consume(c, {r}, 1, 1)
        c.locked = c.locked - 1
      elseif g == '' then
        plain[#plain + 1] = r
      else
        if not by[g] then by[g] = {}; order[#order + 1] = g end
        by[g][#by[g] + 1] = r
      end
    end
  end
  if #plain > 0 then back(c, '', plain) end
  for _, g in ipairs(order) do back_from(c, name, g, by[g]) end
  if #stray > 0 then strays(c, stray) end
  if list.missing > 0 then
    c.locked, c.ready = c.locked - list.missing, c.ready + list.missing
    c.dirty = true
  end
end

-- unlock clears a lock of name whose entries are all gone: reap trusts the record, not the PEL.
local function unlock(c, name, list)
  for _, u in ipairs(list) do
    if u.g ~= '' then
      local holder, _, w = lock_parse(lock_get(c, u.g))
      if holder == name then free(c, u.g, w) end
    end
  end
end

local function forget_reader(c, name)
  call('ZREM', c.P .. 'rd', name)
  call('HDEL', c.P .. 'win', name)
  call('HDEL', c.P .. 'sl', name)
  call('HDEL', c.P .. 'lr', name)
  for lane in string.gmatch(lanes_of(c), '[^,]+') do
    pcall_('XGROUP', 'DELCONSUMER', c.P .. 's:' .. lane, 'w', name)
  end
  c.dirty = true
end

-- present returns which refs of a unit are still pending under name.
local function present(have, refs)
  local t = {}
  for _, r in ipairs(refs) do if have[r] then t[#t + 1] = r end end
  return t
end
