-- pick: receive from one group or one conversation (RC-5). What is unread is filed first, so that the group's lists are complete.
local FILE_AT_ONCE = 500

-- pick_conversation takes what of conversation h makes the next unit off the lists of g, and returns it with its counts; with each it is
-- top messages that are units of their own.
function pick_conversation(c, g, h, top, each)
  local refs = {}
  for _, l in ipairs({'t', 'e', 's'}) do
    local key = c.P .. 'b:' .. g .. ':' .. l
    for _, r in ipairs(call('LRANGE', key, 0, -1)) do
      if #refs >= top then break end
      local head = read(c, r)
      if head and sub(head, 1, #h) == h then refs[#refs + 1] = r end
    end
  end
  if #refs == 0 then return refs end
  local counts = counts_of(c, refs)
  if not each then for _ = unit_size(counts, refs) + 1, #refs do table.remove(refs) end end
  for _, r in ipairs(refs) do call('LREM', c.P .. 'b:' .. g .. ':' .. list_of(r), 1, r) end
  return refs, counts
end

-- receive_group hands out one unit of group g when nobody holds it; conv '' is any conversation. Returns whether to ask again.
function receive_group(H, g, conv)
  local c = H.c
  local n = file_all(c, H.now, FILE_AT_ONCE)
  local again = n >= FILE_AT_ONCE
  local holder, mark, w = lock_parse(lock_get(c, g))
  if holder ~= '' or mark ~= '-' then return again end
  call('ZREM', c.P .. 'ready', g)
  if conv == '' then
    hand_groups(H, {{g = g}})
    return again and #H.open == 0
  end
  local refs, counts = pick_conversation(c, g, conv, H.top)
  if #refs == 0 then
    free(c, g, w)
    return again
  end
  lock_set(c, g, held_value(H.me, w - #refs))
  local items = sift(H, g, refs, claim(c, H.me, refs), counts)
  if #items > 0 then
    keep(H, slot(H, false), g, items, counts and counts[refs[1]])
  else
    free(c, g, w - #refs)
  end
  return again and #H.open == 0
end

-- fresh: new entries of the lanes: one XREADGROUP a lane, then all conversations and all locks looked up at once; free groups
-- are locked, everything of a group that anybody holds (we too, H5), that is parked (H7) or has a backlog is filed, in order.
-- note_malformed dead-letters an entry that is not ours; no counter ever had it.
function note_malformed(H, ref, f)
  local key, id = lane_of(H.c, ref)
  expel(H.c, sub(key, #H.c.P + 3), {{id, f}})
  forget_counts(H.c, {ref})
end

-- file_all files what is unread, at most count entries, so that one group can be picked (RC-5). Returns how many it read.
function file_all(c, now, count)
  local total = 0
  for lane in string.gmatch(c.lanes, '[^,]+') do
    local r = call('XREADGROUP', 'GROUP', 'w', 'backlog', 'COUNT', int(count), 'STREAMS', c.P .. 's:' .. lane, '>')
    if r then
      local H = {c = c, now = now, broken = {}}
      local list = r[1][2]
      total = total + #list
      if not surely_ours(c, lane, list) then list = ours_of(c, lane, list) end
      local E = parse_entries(H, list, lane == '5' and '' or '/' .. lane)
      lookup(c, E)
      local filed, plain = {order = {}}, {}
      for i = 1, E.n do
        local ref, g = E.ref[i], E.group[i]
        if E.owner[i] == '' then
          plain[#plain + 1] = int(seq_of(ref)); plain[#plain + 1] = ref
        elseif not g then
          drop(H, ref, E.head[i], E.body[i], false)
        else
          file_add(filed, g, ref)
        end
      end
      if #plain > 0 then for i = 1, #plain, 4000 do call('ZADD', c.P .. 'bp', unpack(plain, i, math.min(i + 3999, #plain))) end end
      file(c, filed)
      for _, b in ipairs(H.broken) do note_malformed(H, b[1], b[2]) end
    end
  end
  return total
end

-- pop_shared takes what a group of several conversations gives out next: they are put in order before TOP cuts (RC-3, RC-4), so that
-- a timer overtakes its own conversation only. It looks at the first 64 entries of each list.
function pop_shared(c, g, top)
  local items, refs = {}, {}
  for _, l in ipairs({'t', 'e', 's'}) do
    for _, r in ipairs(call('LRANGE', c.P .. 'b:' .. g .. ':' .. l, 0, 63)) do
      local h = read(c, r)
      local owner = h and owner_of(h) or ''
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
