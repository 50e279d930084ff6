-- backlog: handing out what waited in a group's lists or among the plain messages that come again.
local RANK = {t = 1, e = 2, s = 3}
-- order sorts the messages of one unit: conversations by priority then age, inside one timers, errors, sequence (RC-3, G6).
function order(items)
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

-- pop takes up to top refs from a group's lists: timers, then errors, then the sequence (G6).
function pop(c, g, top)
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
function claim(c, me, refs)
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

-- unslot takes back a slot whose unit turned out dead.
function unslot(H, s)
  H.closed[s] = nil
  H.tokens[H.used] = s
  H.used = H.used - 1
end

-- room is how many more messages could join the units of this turn.
function room(H)
  local n = 0
  if H.top > 1 then
    for i = 1, #H.open do
      local u = H.open[i]
      if H.open[u[2]] == u and H.top > #u[3] then n = n + H.top - #u[3] end
    end
  end
  return n
end

-- sift turns claimed refs of one group (or one plain ref) into items, dropping what is dead.
function sift(H, g, refs, got, counts)
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
    elseif g == '' and not ours(r, f) then
      note_malformed(H, r, f)
    else
      local h, b = f[1], f[2]
      local owner = owner_of(h)
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
function counts_of(c, refs)
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

-- unit_size says how many of refs, in their order, make one unit: a message that was rolled back, or may have been, is handed out
-- alone until it is settled, so that only a unit of its own can carry it to a limit.
function unit_size(counts, refs)
  if not counts or counts[refs[1]] then return counts and 1 or #refs end
  for i = 2, #refs do
    if counts[refs[i]] then return i - 1 end
  end
  return #refs
end

-- shorten puts what does not belong into the unit of x back where it waited.
local function shorten(c, x, counts)
  local n, rest = unit_size(counts, x.refs), {}
  for i = #x.refs, n + 1, -1 do rest[i - n] = table.remove(x.refs) end
  if #rest > 0 then front(c, x.g, rest) end
end

function unsure_in(counts, refs)
  if not counts then return false end
  for _, r in ipairs(refs) do
    local v = counts[r]
    if v and sub(v, -2) ~= ',0' then return true end
  end
  return false
end

-- groups hands out units of groups whose waiting entries are popped now: list of {g, mine} where mine says that the lock is ours
-- already (hand-over). Groups whose entries turn out dead are tried again until a unit is found or nothing waits.
function hand_groups(H, list)
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
      if counts and #x.refs > 1 then shorten(c, x, counts) end
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
        keep(H, x.slot, x.g, items, counts and counts[x.refs[1]])
      else
        local _, _, w = lock_parse(lock_get(c, x.g))
        unslot(H, x.slot)
        if w > 0 then again[#again + 1] = x else lock_set(c, x.g, false) end
      end
    end
    list = again
  end
end

-- hand_plain_once hands out plain messages that wait again, r as they came off bp; returns how many places are free although some
-- waited.
function hand_plain_once(H, r)
  local c = H.c
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
