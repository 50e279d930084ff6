-- fresh: new entries of the lanes: one XREADGROUP a lane, then all conversations and all locks looked up at once; free groups
-- are locked, everything of a group that anybody holds (we too, H5), that is parked (H7) or has a backlog is filed, in order.
-- note_malformed dead-letters an entry that is not ours; no counter ever had it.
local function note_malformed(H, ref, f)
  local c = H.c
  consume(c, {ref}, 1, 1)
  malformed(c, H.now, ref, f)
end

-- lookup returns, for the entries read, the conversation of each and the lock of each group.
local function lookup(c, ents, n)
  local hs, nh, seen = {}, 0, {}
  for i = 1, n do
    local o = ents[i].o
    if o ~= '' and byte(o, 2) ~= 58 and not seen[o] and c.cv[o] == nil then
      seen[o] = true; nh = nh + 1; hs[nh] = o
    end
  end
  if nh > 0 then
    for i = 1, nh, 4000 do
      local v = call('HMGET', c.P .. 'cv', unpack(hs, i, math.min(i + 3999, nh)))
      for k = 1, #v do
        if v[k] then
          local s = v[k]
          local p1 = find(s, '|', 1, true)
          local p2 = find(s, '|', p1 + 1, true)
          seen[hs[i + k - 1]] = {sub(s, 1, p1 - 1), sub(s, p2 + 1, p2 + 2)}
        else
          seen[hs[i + k - 1]] = false
        end
      end
    end
  end
  local gs, ng, gseen = {}, 0, {}
  for i = 1, n do
    local e = ents[i]
    local o = e.o
    if o ~= '' then
      if byte(o, 2) == 58 then
        e.g = o
      else
        local k = c.cv[o]
        if k == nil then
          k = seen[o]
          if k then e.g = k[1]; e.st = k[2] end
        elseif k then
          e.g = k.g; e.st = k.st
        end
      end
      local g = e.g
      if g and not gseen[g] and c.lock[g] == nil then
        gseen[g] = true; ng = ng + 1; gs[ng] = g
      end
    end
  end
  for i = 1, ng, 4000 do
    local v = call('HMGET', c.P .. 'lock', unpack(gs, i, math.min(i + 3999, ng)))
    for k = 1, #v do c.lock[gs[i + k - 1]] = v[k] end
  end
end

-- file puts entries that cannot be handed out now into their groups' lists.
local function file(c, filed)
  local refs = {}
  for _, g in ipairs(filed.order) do
    local t = filed[g]
    for i = 1, #t, 4000 do call('RPUSH', c.P .. 'b:' .. g .. ':s', unpack(t, i, math.min(i + 3999, #t))) end
    for i = 1, #t do refs[#refs + 1] = t[i] end
    added(c, g, #t)
  end
  if filed.claim and #refs > 0 then rename(c, refs, 1, #refs, 'backlog') end
end

local function file_add(filed, g, ref)
  local t = filed[g]
  if not t then
    t = {}; filed[g] = t; filed.order[#filed.order + 1] = g
  end
  t[#t + 1] = ref
end

-- fits says whether a header, from its first '|' at p on, states the length of its body: what does not is not ours.
local lengths = {}
local function fits(h, p, b)
  local n = #b
  local s = lengths[n]
  if not s then
    s = '|' .. int(n) .. '|'
    lengths[n] = s
  end
  return sub(h, p, p + #s - 1) == s
end

-- parse_entries splits what XREADGROUP gave into entries with owner and ref; broken ones are set aside.
local function parse_entries(H, raw_entries, suffix, skip)
  local ents, n, plain = {}, 0, true
  for i = 1 + (skip or 0), #raw_entries do
    local e = raw_entries[i]
    local id, f = e[1], e[2]
    local h = f[1]
    local ref = suffix == '' and id or id .. suffix
    local p = h and find(h, '|', 1, true)
    local q = p and find(h, '|', p + 1, true)
    -- The reader of the reply trusts the length; the rest of the header it checks itself.
    if not q or #f ~= 2 or sub(id, -2) ~= '-0' or sub(h, p + 1, q - 1) ~= int(#f[2]) then
      H.broken[#H.broken + 1] = {ref, f or {}}
    else
      n = n + 1
      if p > 1 then plain = false end
      ents[n] = {ref, h, f[2], o = p == 1 and '' or sub(h, 1, p - 1)}
    end
  end
  return ents, n, plain
end

-- hand_entry decides about one new entry of a group; returns true when it became, or joined, a unit of ours.
local function hand_entry(H, e, filed)
  local c, g = H.c, e.g
  local lv = c.lock[g]
  if not lv then
    local s = slot(H, false)
    if s then
      lock_set(c, g, H.me)
      if H.top == 1 then
        emit_one(H, s, g, e[1], e.st, e[2], e[3])
      else
        keep(H, s, g, {{e[1], e[2], e[3], nil, e.st, owner = e.o, prio = 5}})
      end
      return
    end
  elseif H.top > 1 and lv == H.me and H.open[g] and not filed[g] and #H.open[g][3] < H.top then
    local t = H.open[g][3]
    t[#t + 1] = {e[1], e[2], e[3], nil, e.st, owner = e.o, prio = 5}
    return
  end
  file_add(filed, g, e[1])
end

-- hand_plain_entries hands out the plain messages at the start of what was read while there are slots, and returns how many they
-- are: the path of a queue without conversations, where nothing has to be looked up.
local function hand_plain_entries(H, list)
  local out, no, w, nw, used, n, bodies, nb = H.out, H.no, H.win, H.nw, H.used, H.n, H.bodies, H.nb
  if H.state or next(H.closed) then return 0 end
  local tokens, first = H.tokens, used
  for i = 1, #list do
    local e = list[i]
    local id, f = e[1], e[2]
    local h = f[1]
    if used == n or not h or byte(h, 1) ~= 124 or f[3] or byte(id, -1) ~= 48 or byte(id, -2) ~= 45
      or not fits(h, 1, f[2]) then break end
    used = used + 1
    local s = tokens[used]
    out[no + 1] = s; out[no + 2] = '1'; out[no + 3] = ''; out[no + 4] = id
    out[no + 5] = ''; out[no + 6] = ''; out[no + 7] = h
    no = no + 7
    nb = nb + 1; bodies[nb] = f[2]
    w[nw + 1] = s; w[nw + 2] = ' '; w[nw + 3] = id; w[nw + 4] = ' \n'
    nw = nw + 4
  end
  local done = used - first
  H.no, H.nw, H.used, H.nb = no, nw, used, nb
  H.units, H.msgs = H.units + done, H.msgs + done
  return done
end

local function hand_lane(H, lane, count)
  local c = H.c
  local key = c.P .. 's:' .. lane
  local r = pcall_('XREADGROUP', 'GROUP', 'w', H.me, 'COUNT', int(count), 'STREAMS', key, '>')
  if not r then return 0 end
  if r.err then
    H.nogroup = true
    return 0
  end
  local list = r[1][2]
  local suffix = lane == '5' and '' or '/' .. lane
  local skip = suffix == '' and not c.ttlf and hand_plain_entries(H, list) or 0
  if skip == #list then return skip end
  local ents, n, plain = parse_entries(H, list, suffix, skip)
  if not plain then lookup(c, ents, n) end
  local filed = {order = {}, claim = true}
  local late = {}
  for i = 1, n do
    local e = ents[i]
    if c.ttlf and expired(e[2], H.now) then
      drop(H, e[1], e[2], e[3], true)
      expire(c, H.now, e[1], e[2], e[3], 0, 0, '', e.g)
      if e.o ~= '' and byte(e.o, 2) ~= 58 then gone(c, e.o, fields(e[2])[3], e[1]) end
    elseif e.o == '' then
      local s = slot(H, false)
      if s then emit(H, s, '', {e}) else late[#late + 1] = e[1] end
    elseif not e.g then
      drop(H, e[1], e[2], e[3], false)
    else
      hand_entry(H, e, filed)
    end
  end
  if #late > 0 then back_plain(c, late) end
  if #filed.order > 0 then file(c, filed) end
  for _, b in ipairs(H.broken) do note_malformed(H, b[1], b[2]) end
  H.broken = {}
  return #list
end

-- file_all files what is unread, at most count entries, so that one group can be picked (RC-5). Returns how many it read.
local function file_all(c, now, count)
  local total = 0
  for lane in string.gmatch(c.lanes, '[^,]+') do
    local r = call('XREADGROUP', 'GROUP', 'w', 'backlog', 'COUNT', int(count), 'STREAMS', c.P .. 's:' .. lane, '>')
    if r then
      local H = {c = c, now = now, broken = {}}
      local ents, n = parse_entries(H, r[1][2], lane == '5' and '' or '/' .. lane)
      total = total + #r[1][2]
      lookup(c, ents, n)
      local filed, plain = {order = {}}, {}
      for i = 1, n do
        local e = ents[i]
        if e.o == '' then
          plain[#plain + 1] = int(seq_of(e[1])); plain[#plain + 1] = e[1]
        elseif not e.g then
          drop(H, e[1], e[2], e[3], false)
        else
          file_add(filed, e.g, e[1])
        end
      end
      if #plain > 0 then for i = 1, #plain, 4000 do call('ZADD', c.P .. 'bp', unpack(plain, i, math.min(i + 3999, #plain))) end end
      file(c, filed)
      for _, b in ipairs(H.broken) do note_malformed(H, b[1], b[2]) end
    end
  end
  return total
end
