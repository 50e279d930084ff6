
-- lookup finds, for the entries read (see parse_entries), the conversation of each and the lock of each group.
local function lookup(c, E)
  local owner, group, state = E.owner, E.group, E.state
  local hs, nh, gof, sof = {}, 0, {}, {}
  for i = 1, E.n do
    local o = owner[i]
    if o ~= '' and byte(o, 2) ~= 58 and gof[o] == nil then
      local k = c.cv[o]
      if k == nil then
        nh = nh + 1; hs[nh] = o
        gof[o] = false
      else
        gof[o], sof[o] = k and k.g, k and k.st
      end
    end
  end
  for i = 1, nh, 4000 do
    local v = call('HMGET', c.P .. 'cv', unpack(hs, i, math.min(i + 3999, nh)))
    for k = 1, #v do
      local s = v[k]
      if s then
        local p1 = find(s, '|', 1, true)
        local p2 = find(s, '|', p1 + 1, true)
        local h = hs[i + k - 1]
        gof[h], sof[h] = sub(s, 1, p1 - 1), sub(s, p2 + 1, p2 + 2)
      end
    end
  end
  local gs, ng, lock = {}, 0, c.lock
  for i = 1, E.n do
    local o = owner[i]
    if o ~= '' then
      local g = o
      if byte(o, 2) ~= 58 then g, state[i] = gof[o], sof[o] end
      group[i] = g
      if g and lock[g] == nil then
        lock[g] = false
        ng = ng + 1; gs[ng] = g
      end
    end
  end
  for i = 1, ng, 4000 do
    local v = call('HMGET', c.P .. 'lock', unpack(gs, i, math.min(i + 3999, ng)))
    for k = 1, #v do lock[gs[i + k - 1]] = v[k] end
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

-- parse_entries splits what XREADGROUP gave, behind the first skip entries, into columns (a table for each entry costs more); broken
-- entries are set aside.
local function parse_entries(H, raw_entries, suffix, skip)
  local ref, head, body, owner, n, plain = {}, {}, {}, {}, 0, true
  for i = 1 + (skip or 0), #raw_entries do
    local e = raw_entries[i]
    local id, f = e[1], e[2]
    local h = f[1]
    local p = h and find(h, '|', 1, true)
    local b = f[2]
    -- The reader of the reply trusts the length; the rest of the header it checks itself.
    if not p or not b or f[3] or sub(id, -2) ~= '-0' or find(h, starts[#b] or start_of(#b), p, true) ~= p then
      H.broken[#H.broken + 1] = {suffix == '' and id or id .. suffix, f or {}}
    else
      n = n + 1
      ref[n] = suffix == '' and id or id .. suffix
      head[n], body[n] = h, b
      if p > 1 then
        plain = false
        owner[n] = sub(h, 1, p - 1)
      else
        owner[n] = ''
      end
    end
  end
  return {n = n, ref = ref, head = head, body = body, owner = owner, group = {}, state = {}}, plain
end

-- item is the i-th entry as a message of a unit (see sift).
local function item(E, i)
  return {E.ref[i], E.head[i], E.body[i], nil, E.state[i], owner = E.owner[i], prio = 5}
end

-- hand_entry decides about the i-th new entry, of a group; it becomes, or joins, a unit of ours, or is filed.
local function hand_entry(H, E, i, filed)
  local c, g = H.c, E.group[i]
  local lv = c.lock[g]
  if not lv then
    local s = slot(H, false)
    if s then
      lock_set(c, g, H.me)
      if H.top == 1 then
        emit_one(H, s, g, E.ref[i], E.state[i], E.head[i], E.body[i])
      else
        keep(H, s, g, {item(E, i)})
      end
      return
    end
  elseif H.top > 1 and lv == H.me and H.open[g] and not filed[g] and #H.open[g][3] < H.top then
    local t = H.open[g][3]
    t[#t + 1] = item(E, i)
    return
  end
  file_add(filed, g, E.ref[i])
end

-- hand_plain_entries hands out the plain messages at the start of what was read while there are slots, and returns how many they
-- are: the path of a queue without conversations, where nothing has to be looked up. Their form in the reply: slot, '', ref, header.
local function hand_plain_entries(H, list)
  local out, no, w, nw, used, n, bodies, nb = H.out, H.no, H.win, H.nw, H.used, H.n, H.bodies, H.nb
  if H.state or next(H.closed) then return 0 end
  local tokens, first = H.tokens, used
  for i = 1, #list do
    local e = list[i]
    local id, f = e[1], e[2]
    local h = f[1]
    if used == n or not h or f[3] then break end
    local b = f[2]
    if find(h, starts[#b] or start_of(#b), 1, true) ~= 1 or sub(id, -2) ~= '-0' then break end
    used = used + 1
    local s = tokens[used]
    out[no + 1] = s; out[no + 2] = ''; out[no + 3] = id; out[no + 4] = h
    no = no + 4
    nb = nb + 1; bodies[nb] = b
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
  local got = #list
  if (c.tops or tonumber(string.match(list[got][1], '^%d+')) > c.seq) and not surely_ours(c, lane, list) then list = ours_of(c, lane, list) end
  local suffix = lane == '5' and '' or '/' .. lane
  local skip = suffix == '' and not c.ttlf and hand_plain_entries(H, list) or 0
  if skip == #list then return got end
  local E, plain = parse_entries(H, list, suffix, skip)
  if not plain then lookup(c, E) end
  local filed = {order = {}, claim = true}
  local late = {}
  for i = 1, E.n do
    local ref, o = E.ref[i], E.owner[i]
    if c.ttlf and expired(E.head[i], H.now) then
      drop(H, ref, E.head[i], E.body[i], true)
      expire(c, H.now, ref, E.head[i], E.body[i], 0, 0, '', E.group[i])
      if o ~= '' and byte(o, 2) ~= 58 then gone(c, o, fields(E.head[i])[3], ref) end
    elseif o == '' then
      local s = slot(H, false)
      if s then emit(H, s, '', {item(E, i)}) else late[#late + 1] = ref end
    elseif not E.group[i] then
      drop(H, ref, E.head[i], E.body[i], false)
    else
      hand_entry(H, E, i, filed)
    end
  end
  if #late > 0 then back_plain(c, late) end
  if #filed.order > 0 then file(c, filed) end
  for _, b in ipairs(H.broken) do note_malformed(H, b[1], b[2]) end
  H.broken = {}
  return got
end

-- receive_any fills the free slots. One of the places is for new entries, so that a full backlog cannot starve them; a single place
-- goes to them now and then. With several priorities it goes level by level: what is better goes first, wherever it waits (RC-2).
local function receive_any(H)
  local c, again = H.c, false
  if c.age > 0 and c.lanes ~= '5' then again = file_all(c, H.now, 100) >= 100 end
  local function reserve()
    local l = left(H)
    if l > 1 then return l - 1 end
    return c.chg % 8 == 7 and 0 or l
  end
  local ranked = c.age == 0 and c.lanes ~= '5'
  if not ranked then
    hand_plain(H, reserve())
    hand_ready(H, reserve())
  end
  for lane in string.gmatch(c.lanes, '[^,]+') do
    if ranked then
      if lane == '5' then hand_plain(H, reserve()) end
      hand_ready(H, reserve(), tonumber(lane))
    end
    local l = left(H)
    local want = l * H.top + (H.top > 1 and room(H) or 0)
    if want > 0 and hand_lane(H, lane, want) == want then again = true end
    if ranked and not H.alone then hand_ready(H, left(H), tonumber(lane)) end
  end
  if left(H) > 0 and not H.alone then
    hand_ready(H, left(H))
    hand_plain(H, left(H))
  end
  return again or H.more
end
