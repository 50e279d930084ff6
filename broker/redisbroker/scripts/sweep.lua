-- sweep: a look at an idle queue without a reader: it is marked asleep when it has nothing deliverable, so that the next arrival
-- wakes somebody. What lies in held groups, or in those that rest, only looks deliverable; a reader finds out. Not so what dead
-- letters hold up: that may be for days. It looks at the streams themselves, not at counters alone, and what others wrote there becomes
-- dead letters.
-- lib: names base entry stored foreign waits
-- KEYS 1: meta of the queue.
-- ARGV 1: now in ms, '' for the server's
-- RETURNS NOENT, OFF, IDLE (marked asleep) or WORK.
local c = open(sub(KEYS[1], 1, -5))
if not c then return 'NOENT' end
clock(ARGV[1])
local more = expel_some(c)
flush()
if not can_receive(c) then return 'OFF' end
if more or c.ready > 0 and (not c.parked or deliverable(c)) or c.ready <= 0 and anything_waits(c) then return 'WORK' end
call('HDEL', c.P .. 'meta', '_') -- a sweep is no reason to fail when Redis is full
-- A queue in which nothing is left of conversations, sessions and times to live is one of plain messages again.
if not c.plain and c.lanes == '5' and not c.actq and call('EXISTS', c.P .. 'cv', c.P .. 'lock') == 0 and
  call('XLEN', c.P .. 's:5') + call('XLEN', c.P .. 's:sys') == 0 then
  call('HSET', c.P .. 'meta', 'plain', '1')
end
if not c.asleep then call('HSET', c.P .. 'meta', 'asleep', '1') end
return 'IDLE'
