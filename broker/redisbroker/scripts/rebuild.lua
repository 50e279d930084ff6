-- rebuild: a lane lost its consumer group (XGROUP DESTROY, a partial flush). Everything is put back as if unread: lists, locks, ready
-- sets, retries and readers are dropped, groups are made from 0, system messages are filed again. Attempt counts are kept.
-- lib: names base lock stored giveback
-- KEYS 1: meta of the queue or sub-queue.
-- ARGV 1: now in ms, '' for the server's
-- RETURNS whole when no lane lacks its group, else rebuilt.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return 'NOENT' end
local missing = false
for lane in string.gmatch('sys,' .. c.lanes, '[^,]+') do
  local r = pcall_('XPENDING', c.P .. 's:' .. lane, 'w')
  if type(r) == 'table' and r.err then missing = true end
end
if not missing then return 'whole' end
for _, g in ipairs(call('HKEYS', c.P .. 'lock')) do
  for _, l in ipairs({'t', 'e', 's'}) do call('DEL', c.P .. 'b:' .. g .. ':' .. l) end
end
call('DEL', c.P .. 'lock', c.P .. 'ready', c.P .. 'bp', c.P .. 'retry', c.P .. 'win', c.P .. 'rd', c.P .. 'sl', c.P .. 'lr')
-- Entries of ended conversations lie in the lanes too, uncounted; when entries are gone there are fewer than the counters say.
local n, live = 0, c.ready + c.locked + c.retrying
for lane in string.gmatch('sys,' .. c.lanes, '[^,]+') do
  local key = c.P .. 's:' .. lane
  pcall_('XGROUP', 'DESTROY', key, 'w')
  call('XGROUP', 'CREATE', key, 'w', '0', 'MKSTREAM')
  n = n + call('XLEN', key)
end
local r = call('XREADGROUP', 'GROUP', 'w', 'backlog', 'STREAMS', c.P .. 's:sys', '>')
if r then
  for _, e in ipairs(r[1][2]) do
    local f = fields(e[2][1])
    local conv = call('HGET', c.P .. 'cv', f[1])
    if conv then
      local g, l = fields(conv)[1], f[6] == 'T' and 't' or 'e'
      call('RPUSH', c.P .. 'b:' .. g .. ':' .. l, e[1] .. '/' .. l)
      added(c, g, 1)
    else
      consume(c, {e[1] .. '/e'}, 1, 1)
      n = n - 1
    end
  end
end
n = math.min(n, live)
c.ready = n
c.locked = 0
c.retrying = 0
c.dirty = true
event(c, now, 'stream_lost', 'messages', int(n))
wake(c)
flush()
return 'rebuilt'
