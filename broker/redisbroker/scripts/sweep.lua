-- sweep: a look at an idle queue without a reader: it is marked asleep when it has nothing deliverable, so that the next arrival
-- wakes somebody. What lies in held groups, or in those that rest, only looks deliverable; a reader finds out. Not so what dead
-- letters hold up: that may be for days.
-- lib: names base stored waits
-- KEYS 1: meta of the queue.
-- ARGV: none.
-- RETURNS NOENT, OFF, IDLE (marked asleep) or WORK.
local c = open(sub(KEYS[1], 1, -5))
if not c then return 'NOENT' end
if not can_receive(c) then return 'OFF' end
if c.ready > 0 and (not c.parked or deliverable(c)) then return 'WORK' end
call('HDEL', c.P .. 'meta', '_') -- a sweep is no reason to fail when Redis is full
-- A queue in which nothing is left of conversations, sessions and times to live is one of plain messages again.
if not c.plain and c.lanes == '5' and not c.actq and call('EXISTS', c.P .. 'cv', c.P .. 'lock') == 0 and
  call('XLEN', c.P .. 's:5') + call('XLEN', c.P .. 's:sys') == 0 then
  call('HSET', c.P .. 'meta', 'plain', '1')
end
if not c.asleep then call('HSET', c.P .. 'meta', 'asleep', '1') end
return 'IDLE'
