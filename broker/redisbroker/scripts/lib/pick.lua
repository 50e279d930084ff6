-- pick: receive from one group or one conversation (RC-5). What is unread is filed first, so that the group's lists are complete.
local FILE_AT_ONCE = 500

local function pick_conversation(c, g, h, top)
  local refs = {}
  for _, l in ipairs({'t', 'e', 's'}) do
    local key = c.P .. 'b:' .. g .. ':' .. l
    for _, r in ipairs(call('LRANGE', key, 0, -1)) do
      if #refs >= top then break end
      local head = read(c, r)
      if head and sub(head, 1, #h) == h then refs[#refs + 1] = r end
    end
    for _, r in ipairs(refs) do if list_of(r) == l then call('LREM', key, 1, r) end end
  end
  return refs
end

-- receive_group hands out one unit of group g when nobody holds it; conv '' is any conversation. Returns whether to ask again.
local function receive_group(H, g, conv)
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
  local refs = pick_conversation(c, g, conv, H.top)
  if #refs == 0 then
    free(c, g, w)
    return again
  end
  local counts = counts_of(c, refs)
  lock_set(c, g, held_value(H.me, w - #refs))
  local items = sift(H, g, refs, claim(c, H.me, refs), counts)
  if #items > 0 then
    keep(H, slot(H, false), g, items)
  else
    free(c, g, w - #refs)
  end
  return again and #H.open == 0
end
