-- sweep: a look at an idle queue without a reader: it is marked asleep when it has nothing deliverable, so that the next arrival
-- wakes somebody. What lies in parked or held groups only looks deliverable; a reader finds out.
-- lib: names base
-- KEYS 1: meta of the queue.
-- ARGV: none.
-- RETURNS NOENT, OFF, IDLE (marked asleep) or WORK.
local c = open(sub(KEYS[1], 1, -5))
if not c then return 'NOENT' end
if not can_receive(c) then return 'OFF' end
if c.ready > 0 then return 'WORK' end
if not c.asleep then call('HSET', c.P .. 'meta', 'asleep', '1') end
return 'IDLE'
