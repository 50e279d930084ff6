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

-- units parses a reader's record: slot refs group, one unit a line.
local function units(c, name)
  local list = {}
  for line in string.gmatch(call('HGET', c.P .. 'win', name) or '', '[^\n]+') do
    local s, refs, g = string.match(line, '^(%d+) (%S+) (.*)$')
    if s then
      local t = {}
      for r in string.gmatch(refs, '[^,]+') do t[#t + 1] = r end
      list[#list + 1] = {slot = s, refs = t, g = g}
    end
  end
  return list
end

-- orphans gives back, uncounted, entries that a name holds outside of its record (a lost reply, H3), and locks that are left.
local function orphans(c, now, name, known)
  local plain, by, order = {}, {}, {}
  for _, r in ipairs(pending(c, name)) do
    if not known[r] then
      local head = read(c, r)
      local owner = head and sub(head, 1, find(head, '|', 1, true) - 1) or ''
      local g = ''
      if owner ~= '' then
        if sub(owner, 1, 2) == 's:' then
          g = owner
        else
          local conv = conv_get(c, owner)
          g = conv and conv.g or nil
        end
      end
      if not head or g == nil then
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
  for _, g in ipairs(order) do back(c, g, by[g]) end
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
