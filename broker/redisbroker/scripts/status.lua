-- status: switch a queue. Turning it active raises the epoch, so that poison counts start from 0 (PM-4), and wakes everybody;
-- turning it off wakes waiting receivers, which then fail (RC-7).
-- lib: names base entry stored foreign waits notify
-- KEYS 1: meta of the queue.
-- ARGV 1: now in ms, '' for the server's  2: status  3: epoch that must still hold, '' any. With one, only a queue that poison turned off is
--   switched: what an operator switched since stays as it is.
-- RETURNS the status before; NOENT; or CHANGED when the epoch is another, or the queue is not off.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return 'NOENT' end
if ARGV[3] ~= '' and (ARGV[3] ~= c.epoch or c.status ~= 'off') then return 'CHANGED' end
local before = c.status
local was = can_receive(c)
c.status = ARGV[2]
call('HDEL', c.P .. 'meta', '_') -- a queue can be turned on, and so be drained, when Redis is full
call('HSET', c.P .. 'meta', 'status', ARGV[2])
if not was and can_receive(c) then
  call('HSET', c.P .. 'meta', 'epoch', int(tonumber(c.epoch) + 1), 'pcount', '0')
  event(c, now, 'queue_enabled', 'before', before)
  if c.actq then
    c.act = false
    call('HDEL', c.P .. 'meta', 'act')
    stir(c)
  end
elseif was and not can_receive(c) then
  event(c, now, 'queue_switched', 'status', ARGV[2])
end
call('HSET', c.P .. 'meta', 'asleep', '0')
publish(c, 'w ' .. c.P)
c.nextdue = now
c.dirty = true
publish(c, 'd ' .. int(now) .. ' ' .. c.P)
flush()
return before
