-- release: a reader goes; everything it still holds is given back uncounted (shutdown, G9). Repeating it is harmless, and so is a
-- call after the lease has ended.
-- lib: names base entry lock readers stored waits notify giveback
-- KEYS 1: meta of the queue or sub-queue.
-- ARGV 1: now in ms, '' for the server's  2: reader
-- RETURNS OK.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return 'OK' end
local name = ARGV[2]
local lease = call('ZSCORE', c.P .. 'rd', name)
if not lease or tonumber(lease) < now then return 'OK' end -- expired is lost: reap counts what was running
call('HDEL', c.P .. 'meta', '_')
local list = units(c, name)
orphans(c, now, name, {}, list)
unlock(c, name, list)
forget_reader(c, name)
-- Only for work: a reader that closes because it is idle must not have another one open.
if c.ready > 0 and (not c.parked or deliverable(c)) then wake(c) end
flush()
return 'OK'
