-- purge: delete up to n waiting messages of a queue or sub-queue; those in a unit of work, deferred or parked with one stay.
-- lib: names base entry lock stored foreign waits notify park attempt dead giveback dialog transmit
-- KEYS 1: meta of the queue or sub-queue.
-- ARGV 1: now in ms, '' for the server's  2: number at most  3: sequence number to start after
-- RETURNS how many were deleted, and the number to go on after; 0 as the second when the end is reached.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return {0, '0'} end
local n, after, deleted, last = tonumber(ARGV[2]), ARGV[3], 0, '0'
local seen = 0
local function held(lane, id)
  local p = call('XPENDING', c.P .. 's:' .. lane, 'w', id, id, '1')
  if not p[1] then return false end
  local who = p[1][2]
  return who ~= 'backlog' and who ~= 'retry', who
end
for lane in string.gmatch(lanes_of(c), '[^,]+') do
  local list = call('XRANGE', c.P .. 's:' .. lane, '(' .. after .. '-0', '+', 'COUNT', int(n))
  if #list == n then
    local e = tonumber(string.match(list[n][1], '^%d+'))
    if last == '0' or e < tonumber(last) then last = int(e) end
  end
  for _, e in ipairs(list) do
    local id = e[1]
    local h, b = e[2][1], e[2][2]
    local ref = lane == '5' and id or id .. '/' .. lane
    if lane == 'sys' then ref = id .. '/' .. (fields(h)[6] == 'T' and 't' or 'e') elseif lane == 'back' then ref = id .. '/b' end
    local busy, who = held(lane, id)
    if not busy and (strange(c, lane, id) or not (b and find(h, '|' .. int(#b) .. '|', 1, true))) then -- written by somebody else, and in no counter
      consume(c, {ref}, 1, 1)
      call('ZREM', c.P .. 'bp', ref)
      deleted = deleted + 1
    elseif not busy then
      local owner = owner_of(h)
      local g = ''
      local dead = false
      if owner ~= '' then
        if byte(owner, 2) == 58 then
          g = owner
        else
          local conv = conv_get(c, owner)
          dead = not conv
          g = conv and conv.g or ''
          if conv then gone(c, owner, fields(h)[3], ref) end
        end
      end
      if who then
        if g ~= '' then
          local l = list_of(ref)
          if call('LREM', c.P .. 'b:' .. g .. ':' .. l, 1, ref) == 1 then
            local holder, mark, w = lock_parse(lock_get(c, g))
            if holder ~= '' then
              lock_set(c, g, held_value(holder, w - 1))
            elseif w <= 1 and mark ~= '!' then
              lock_set(c, g, false)
              call('ZREM', c.P .. 'ready', g)
              call('ZREM', c.P .. 'retry', g)
            else
              lock_set(c, g, mark .. int(w - 1))
            end
          end
        else
          call('ZREM', c.P .. 'bp', ref)
          call('ZREM', c.P .. 'retry', ref)
        end
      end
      consume(c, {ref}, 1, 1)
      forget_counts(c, {ref})
      c.bytes = c.bytes - #b
      if not dead then
        if who == 'retry' then c.retrying = c.retrying - 1 else c.ready = c.ready - 1 end
      end
      deleted = deleted + 1
    end
  end
end
if c.kind == 'q' then
  local sch = call('ZRANGE', c.P .. 'sch', 0, n - 1)
  if #sch > 0 then
    call('ZREM', c.P .. 'sch', unpack(sch))
    call('HDEL', c.P .. 'schm', unpack(sch))
    c.scheduled = c.scheduled - #sch
    deleted = deleted + #sch
    c.dirty = true
  end
end
if c.kind == 'd' and last == '0' then park().forget_lost(c) end
flush()
return {deleted, last}
