-- take: handing out. A hand collects the units of one turn: it takes slots, claims bodies, drops what ended or expired on sight.
-- order sorts the messages of one unit: conversations by priority then age, inside one timers, errors, sequence (RC-3, G6).
local RANK = {t = 1, e = 2, s = 3}
local function order(items)
  if #items < 2 then return end
  local first = {}
  for _, m in ipairs(items) do
    local s = place_of(m[1])
    if not first[m.owner] or s < first[m.owner] then first[m.owner] = s end
  end
  table.sort(items, function(a, b)
    if a.owner ~= b.owner then
      if a.prio ~= b.prio then return a.prio > b.prio end
      return first[a.owner] < first[b.owner]
    end
    local ra, rb = RANK[list_of(a[1])], RANK[list_of(b[1])]
    if ra ~= rb then return ra < rb end
    return place_of(a[1]) < place_of(b[1])
  end)
end

-- pop_shared takes what a group of several conversations gives out next: they are put in order before TOP cuts (RC-3, RC-4), so that
-- a timer overtakes its own conversation only. It looks at the first 64 entries of each list.
local function pop_shared(c, g, top)
  local items, refs = {}, {}
  for _, l in ipairs({'t', 'e', 's'}) do
    for _, r in ipairs(call('LRANGE', c.P .. 'b:' .. g .. ':' .. l, 0, 63)) do
      local h = read(c, r)
      local owner = h and sub(h, 1, find(h, '|', 1, true) - 1) or ''
      local conv = owner ~= '' and conv_get(c, owner)
      items[#items + 1] = {r, owner = owner, prio = conv and tonumber(conv.lane) or 5}
    end
  end
  order(items)
  for i = 1, math.min(top, #items) do
    refs[i] = items[i][1]
    call('LREM', c.P .. 'b:' .. g .. ':' .. list_of(refs[i]), 1, refs[i])
  end
  return refs
end

-- pop takes up to top refs from a group's lists: timers, then errors, then the sequence (G6).
local function pop(c, g, top)
  if c.shared and byte(g, 1) == 103 then
    local s = call('HGET', c.P .. 'gr', g)
    if s and fields(s)[2] ~= '1' then return pop_shared(c, g, top) end
  end
  local refs = {}
  for _, l in ipairs({'t', 'e', 's'}) do
    local want = top - #refs
    if want > 0 then
      local r = call('LPOP', c.P .. 'b:' .. g .. ':' .. l, int(want))
      if r then for _, x in ipairs(r) do refs[#refs + 1] = x end end
    end
  end
  return refs
end

-- claim moves refs to consumer me and returns ref → {header, body, fields}; what is missing is gone from the stream.
local function claim(c, me, refs)
  local got = {}
  local function one(key, ids, n)
    local a = {key, 'w', me, 0}
    for k = 1, n do a[k + 4] = ids[k] end
    for _, e in ipairs(call('XCLAIM', unpack(a, 1, n + 4))) do
      if e and e[2] and #e[2] > 0 then got[key .. e[1]] = e[2] end
    end
  end
  bylane(c, refs, 1, #refs, one)
  local out = {}
  for _, r in ipairs(refs) do
    local key, id = lane_of(c, r)
    out[r] = got[key .. id]
  end
  return out
end

-- hand makes the collector of a turn. tokens: slot numbers, the first nempty of them slots without a unit.
local function hand_new(c, me, now, top, tokens, nempty, withstate)
  return {c = c, me = me, now = now, top = top, tokens = tokens, n = #tokens, nempty = nempty, used = 0, closed = {}, out = {}, no = 0,
    bodies = {''}, nb = 1, win = {}, nw = 0, units = 0, alone = false, more = false, broken = {}, open = {}, state = withstate and c.hasstate, msgs = 0}
end

-- slot gives the next slot, or nil. A unit that must run alone gets an empty slot and closes it for others.
local function slot(H, alone)
  while H.used < H.n do
    local i = H.used + 1
    if alone and i > H.nempty then return nil end
    H.used = i
    local s = H.tokens[i]
    if not H.closed[s] then
      if alone then H.closed[s] = true end
      return s
    end
  end
  return nil
end

-- unslot takes back a slot whose unit turned out dead.
local function unslot(H, s)
  H.closed[s] = nil
  H.tokens[H.used] = s
  H.used = H.used - 1
end

local function left(H) return H.n - H.used end

-- emit_state writes the state of a group behind its unit.
local function emit_state(H, g)
  local out, no = H.out, H.no
  local st = g ~= '' and call('HGETALL', H.c.P .. 'st:' .. g) or {}
  no = no + 1; out[no] = int(#st / 2)
  for i = 1, #st, 2 do
    out[no + 1] = st[i]; out[no + 2] = int(#st[i + 1]); out[no + 3] = st[i + 1]
    no = no + 3
  end
  H.no = no
end

-- emit writes one unit to the reply: slot, number of messages, group; then for each message ref, counts, state, header, body;
-- then the group's state.
local function emit(H, s, g, items)
  local out, no = H.out, H.no
  local n = #items
  out[no + 1] = s; out[no + 2] = n == 1 and '1' or int(n); out[no + 3] = g
  no = no + 3
  local w, nw = H.win, H.nw
  w[nw + 1] = s; w[nw + 2] = ' '
  nw = nw + 2
  for i = 1, n do
    local m = items[i]
    out[no + 1] = m[1]; out[no + 2] = m[4] or ''; out[no + 3] = m[5] or ''; out[no + 4] = m[2]
    no = no + 4
    H.nb = H.nb + 1; H.bodies[H.nb] = m[3]
    if i > 1 then nw = nw + 1; w[nw] = ',' end
    nw = nw + 1; w[nw] = m[1]
  end
  w[nw + 1] = ' '; w[nw + 2] = g; w[nw + 3] = '\n'
  H.nw = nw + 3
  H.no = no
  if H.state then emit_state(H, g) end
  H.units = H.units + 1
  H.msgs = H.msgs + n
end

-- emit_one is emit for a unit of one message, without a table for it.
local function emit_one(H, s, g, ref, state, h, b)
  local out, no, w, nw = H.out, H.no, H.win, H.nw
  out[no + 1] = s; out[no + 2] = '1'; out[no + 3] = g; out[no + 4] = ref
  out[no + 5] = ''; out[no + 6] = state or ''; out[no + 7] = h
  H.no = no + 7
  H.nb = H.nb + 1; H.bodies[H.nb] = b
  w[nw + 1] = s; w[nw + 2] = ' '; w[nw + 3] = ref; w[nw + 4] = ' '; w[nw + 5] = g; w[nw + 6] = '\n'
  H.nw = nw + 6
  if H.state then emit_state(H, g) end
  H.units = H.units + 1
  H.msgs = H.msgs + 1
end

-- keep holds a unit of a group back until the lanes were read: entries read in the same call may join it while its backlog is
-- empty and it has fewer than TOP.
local function keep(H, s, g, items)
  local u = {s, g, items}
  H.open[#H.open + 1] = u
  if H.top > 1 and H.c.lock[g] == H.me then H.open[g] = u end
end

-- room is how many more messages could join the units of this turn.
local function room(H)
  local n = 0
  if H.top > 1 then
    for i = 1, #H.open do
      local u = H.open[i]
      if H.open[u[2]] == u and H.top > #u[3] then n = n + H.top - #u[3] end
    end
  end
  return n
end

-- drop consumes messages that nobody will get: of an ended conversation, or expired. counted: the counter still has them.
local function drop(H, ref, h, b, counted)
  local c = H.c
  consume(c, {ref}, 1, 1)
  forget_counts(c, {ref})
  c.bytes = c.bytes - #b
  if counted then c.ready = c.ready - 1 end
end

-- sift turns claimed refs of one group (or one plain ref) into items, dropping what is dead.
local function sift(H, g, refs, got, counts)
  local c, items = H.c, {}
  for _, r in ipairs(refs) do
    local f = got[r]
    if not f then
      c.lost = c.lost + 1
      c.ready = c.ready - 1
      call('HSET', c.P .. 'meta', 'lost', int(c.lost))
      local key, id = lane_of(c, r)
      call('XACK', key, 'w', id)
      forget_counts(c, {r})
      event(c, H.now, 'entries_lost', 'sequence_number', int(seq_of(r)))
    else
      local h, b = f[1], f[2]
      local owner = sub(h, 1, find(h, '|', 1, true) - 1)
      local conv = nil
      if owner ~= '' and sub(owner, 1, 2) ~= 's:' then conv = conv_get(c, owner) end
      if conv == false then
        drop(H, r, h, b, false)
      elseif c.ttlf and expired(h, H.now) then
        drop(H, r, h, b, true)
        expire(c, H.now, r, h, b, 0, 0, '', g)
        if conv then gone(c, owner, fields(h)[3], r) end
      else
        if conv and list_of(r) == 't' then
          conv.tp = 0
          c.cvd[owner] = true
        end
        items[#items + 1] = {r, h, b, counts and counts[r] or nil, conv and conv.st or nil, owner = owner, prio = conv and tonumber(conv.lane) or 5}
      end
    end
  end
  order(items)
  return items
end

-- counts_of returns ref → stored counts 'd,p,e,u', and whether one of refs is uncertain.
local function counts_of(c, refs)
  if #refs == 0 or call('EXISTS', c.P .. 'att') == 0 then return nil, false end
  local m, unsure = {}, false
  for i = 1, #refs, 4000 do
    local v = call('HMGET', c.P .. 'att', unpack(refs, i, math.min(i + 3999, #refs)))
    for k = 1, #v do
      if v[k] then
        m[refs[i + k - 1]] = v[k]
        local d, p, u = att_parse(v[k], c.epoch)
        m[refs[i + k - 1]] = int(d) .. ',' .. int(p) .. ',' .. int(u)
        if u > 0 then unsure = true end
      end
    end
  end
  return m, unsure
end

local function unsure_in(counts, refs)
  if not counts then return false end
  for _, r in ipairs(refs) do
    local v = counts[r]
    if v and sub(v, -2) ~= ',0' then return true end
  end
  return false
end

-- groups hands out units of groups whose waiting entries are popped now: list of {g, mine} where mine says that the lock is ours
-- already (hand-over). Groups whose entries turn out dead are tried again until a unit is found or nothing waits.
local function hand_groups(H, list)
  local c = H.c
  while #list > 0 do
    local all, again = {}, {}
    for _, x in ipairs(list) do
      x.refs = pop(c, x.g, H.top)
      for _, r in ipairs(x.refs) do all[#all + 1] = r end
    end
    local counts, unsure = counts_of(c, all)
    local take_now = {}
    for _, x in ipairs(list) do
      local _, _, w = lock_parse(lock_get(c, x.g))
      w = math.max(0, w - #x.refs)
      local must_alone = unsure and unsure_in(counts, x.refs)
      local s = #x.refs > 0 and slot(H, must_alone)
      if #x.refs == 0 then
        lock_set(c, x.g, false)
      elseif not s then
        if must_alone then H.alone = true end
        front(c, x.g, x.refs)
        free(c, x.g, w + #x.refs)
      else
        x.slot = s
        lock_set(c, x.g, held_value(H.me, w))
        take_now[#take_now + 1] = x
      end
    end
    local need = {}
    for _, x in ipairs(take_now) do for _, r in ipairs(x.refs) do need[#need + 1] = r end end
    local got = claim(c, H.me, need)
    for _, x in ipairs(take_now) do
      local items = sift(H, x.g, x.refs, got, counts)
      if #items > 0 then
        keep(H, x.slot, x.g, items)
      else
        local _, _, w = lock_parse(lock_get(c, x.g))
        unslot(H, x.slot)
        if w > 0 then again[#again + 1] = x else lock_set(c, x.g, false) end
      end
    end
    list = again
  end
end

local function emit_kept(H)
  for i = 1, #H.open do
    local u = H.open[i]
    order(u[3])
    emit(H, u[1], u[2], u[3])
  end
end

-- best_ready takes up to n groups off those that wait, best first; with a level only those of at least that.
local function best_ready(c, n, level)
  if not level then
    local r, out = call('ZPOPMIN', c.P .. 'ready', int(n)), {}
    for i = 1, #r, 2 do out[#out + 1] = {g = r[i]} end
    return out
  end
  local out = {}
  for i, g in ipairs(call('ZRANGEBYSCORE', c.P .. 'ready', '-inf', '(' .. int((11 - level) * 1e14), 'LIMIT', '0', int(n))) do
    out[i] = {g = g}
    call('ZREM', c.P .. 'ready', g)
  end
  return out
end

-- hand_ready hands out up to n groups that wait free, with a level only those of at least that. Groups of which nothing is alive
-- hide nobody: the next ones are tried, at most LOOKS times in one script.
local LOOKS = 50
local function hand_ready(H, n, level)
  for _ = 1, LOOKS do
    if n <= 0 then return end
    local list = best_ready(H.c, n, level)
    if #list == 0 then return end
    local before = #H.open
    hand_groups(H, list)
    n = n - (#H.open - before)
    if H.alone then return end
  end
  H.more = true
end

-- hand_plain_once hands out up to n plain messages that wait again; returns how many places are free although some waited.
local function hand_plain_once(H, n)
  local c = H.c
  local r = call('ZPOPMIN', c.P .. 'bp', int(n))
  if #r == 0 then return 0 end
  local refs = {}
  for i = 1, #r, 2 do refs[#refs + 1] = r[i] end
  local counts, unsure = counts_of(c, refs)
  local mine, slots = {}, {}
  for _, ref in ipairs(refs) do
    local must_alone = unsure and unsure_in(counts, {ref})
    local s = slot(H, must_alone)
    if s then
      mine[#mine + 1] = ref; slots[ref] = s
    else
      if must_alone then H.alone = true end
      call('ZADD', c.P .. 'bp', int(seq_of(ref)), ref)
    end
  end
  local got = claim(c, H.me, mine)
  local spare = 0
  for _, ref in ipairs(mine) do
    local items = sift(H, '', {ref}, got, counts)
    if #items > 0 then
      emit(H, slots[ref], '', items)
    else
      unslot(H, slots[ref])
      spare = spare + 1
    end
  end
  return spare
end

local function hand_plain(H, n)
  while n > 0 do n = hand_plain_once(H, n) end
end
