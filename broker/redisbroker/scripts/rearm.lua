-- rearm: the next instant of a repeating timer or schedule that fired. Only the first of several hosts arms it.
-- lib: names base stored
-- KEYS 1: meta of the queue.
-- ARGV 1: now in ms, '' for the server's  2: kind (tm timer, sd schedule)  3: handle or name  4: instant that fired
--   5: next instant in ms, '' never. A timer never gets one beyond its conversation's lifetime (TM-6)
-- RETURNS 1 when it was armed, 0 when another had done it, or it was armed anew, cancelled or ended meanwhile.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return 0 end
local kind, name = ARGV[2], ARGV[3]
if call('HGET', c.P .. kind .. 'n', name) ~= ARGV[4] then return 0 end
call('HDEL', c.P .. kind .. 'n', name)
local ep = kind == 'tm' and call('HGET', c.P .. 'ep', name)
local expires = ep and fields(ep)[7] or ''
if ARGV[5] == '' or expires ~= '' and tonumber(ARGV[5]) > tonumber(expires) then
  call('ZREM', c.P .. kind, name)
  if kind == 'tm' then call('HDEL', c.P .. 'tmc', name) end
  return 0
end
call('ZADD', c.P .. kind, ARGV[5], name)
setdue(c, tonumber(ARGV[5]))
c.dirty = true
flush()
return 1
