-- rebuild: a lane lost its consumer group (XGROUP DESTROY, a partial flush). Everything is put back as if unread: lists, locks, ready
-- sets, retries and readers are dropped, groups are made from 0, system messages and those put back are filed again. Attempt counts
-- are kept, and so is what dead letters hold up.
-- lib: names base entry lock stored foreign waits notify park giveback
-- KEYS 1: meta of the queue or sub-queue.
-- ARGV 1: now in ms, '' for the server's
-- RETURNS whole when no lane lacks its group, else rebuilt.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return 'NOENT' end
local missing = false
for lane in string.gmatch(lanes_of(c), '[^,]+') do
  local r = pcall_('XPENDING', c.P .. 's:' .. lane, 'w')
  if type(r) == 'table' and r.err then missing = true end
end
if not missing then return 'whole' end
repeat until not expel_some(c) -- as long as what is unread in the lanes sys and back is not ours
for _, g in ipairs(call('HKEYS', c.P .. 'lock')) do
  for _, l in ipairs({'t', 'e', 's'}) do call('DEL', c.P .. 'b:' .. g .. ':' .. l) end
  call('DEL', c.P .. 'tk:' .. g)
end
call('DEL', c.P .. 'lock', c.P .. 'ready', c.P .. 'bp', c.P .. 'retry', c.P .. 'win', c.P .. 'rd', c.P .. 'sl', c.P .. 'lr', c.P .. 'tkr')
-- Entries of ended conversations lie in the lanes too, uncounted; when entries are gone there are fewer than the counters say.
local n, live = 0, c.ready + c.locked + c.retrying
for lane in string.gmatch(lanes_of(c), '[^,]+') do
  local key = c.P .. 's:' .. lane
  pcall_('XGROUP', 'DESTROY', key, 'w')
  call('XGROUP', 'CREATE', key, 'w', '0', 'MKSTREAM')
  n = n + call('XLEN', key)
end
if c.parked then for _, g in ipairs(call('HKEYS', c.P .. 'pk')) do lock_set(c, g, '!0') end end

-- refile reads a lane that has no unread entries otherwise; list says in which of its group's lists an entry belongs.
local function refile(lane, list)
  local r = call('XREADGROUP', 'GROUP', 'w', 'backlog', 'STREAMS', c.P .. 's:' .. lane, '>')
  for _, e in ipairs(r and r[1][2] or {}) do
    local head, body, third = e[2][1], e[2][2], e[2][3]
    local f = fields(head)
    if not body or third or f[2] ~= int(#body) or not f[9] then head = nil end
    local l, mark = list(f)
    local ref = e[1] .. '/' .. mark
    local g = f[1]
    if sub(g, 1, 2) ~= 's:' then
      local conv = head and call('HGET', c.P .. 'cv', g)
      g = conv and fields(conv)[1]
    end
    if not head then -- of others
      expel(c, lane, {e})
      n = n - 1
    elseif g then
      if l == 's' then park().in_place(c, g, f[1], ref) else call('RPUSH', c.P .. 'b:' .. g .. ':' .. l, ref) end
      added(c, g, 1)
    else
      consume(c, {ref}, 1, 1)
      n = n - 1
    end
  end
end
refile('sys', function(f)
  local l = f[6] == 'T' and 't' or 'e'
  return l, l
end)
if c.parked then refile('back', function() return 's', 'b' end) end
n = math.min(n, live)
c.ready = n
c.locked = 0
c.retrying = 0
c.dirty = true
event(c, now, 'stream_lost', 'messages', int(n))
wake(c)
flush()
return 'rebuilt'
