-- rearm: the next instant of a repeating timer or schedule that fired, or that is armed further away than it should be since the clock
-- was set back. Only the first of several hosts arms it.
-- lib: names base stored instant
-- KEYS 1: meta of the queue.
-- ARGV 1: now in ms, '' for the server's  2: kind (tm timer, sd schedule, all when everything was looked at and the clock may be trusted)
--   3: handle or name  4: instant that fired, or = and the one it is armed for  5: next instant in ms, '' never. A timer never gets one
--   beyond its conversation's lifetime (TM-6)  6: what the clock showed when that was computed
-- RETURNS 1 when it was armed, 0 when another had done it, or it was armed anew, cancelled or ended meanwhile, or the clock was set back
--   meanwhile: then it is named again.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return 0 end
local kind, name = ARGV[2], ARGV[3]
if now < tonumber(ARGV[6]) then return 0 end
if kind == 'all' then
  note_planned(c, true)
  flush()
  return 1
end
local waits = call('HGET', c.P .. kind .. 'n', name)
if byte(ARGV[4], 1) == 61 then
  local at = call('ZSCORE', c.P .. kind, name)
  if waits or not at or int(tonumber(at)) ~= sub(ARGV[4], 2) then return 0 end
elseif waits ~= ARGV[4] then
  return 0
end
local ep = kind == 'tm' and call('HGET', c.P .. 'ep', name)
local expires = ep and fields(ep)[7] or ''
if ARGV[5] == '' or expires ~= '' and tonumber(ARGV[5]) > tonumber(expires) then
  call('HDEL', c.P .. kind .. 'n', name)
  call('ZREM', c.P .. kind, name)
  if kind == 'tm' then call('HDEL', c.P .. 'tmc', name) end
  return 0
end
arm_cron(c, kind, name, tonumber(ARGV[5]))
flush()
return 1
