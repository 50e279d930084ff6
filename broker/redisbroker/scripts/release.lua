-- release: a reader goes; everything it still holds, by its record or as pending entries, is given back uncounted (shutdown, G9, or a
-- reader that failed or finds that the server lost its last writes). The name need not be registered: that may be what was lost.
-- Repeating it is harmless, and so is a call after the lease has ended.
-- lib: names base entry lock readers stored foreign waits notify giveback tokens
-- KEYS 1: meta of the queue or sub-queue.
-- ARGV 1: now in ms, '' for the server's  2: reader
-- RETURNS OK.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return 'OK' end
local name = ARGV[2]
local lease = call('ZSCORE', c.P .. 'rd', name)
if lease and tonumber(lease) < now then return 'OK' end -- expired is lost: reap counts what was running
if not lease and call('HEXISTS', c.P .. 'win', name) + call('HEXISTS', c.P .. 'sl', name) == 0 and #pending(c, name) == 0 then return 'OK' end
call('HDEL', c.P .. 'meta', '_')
local list = units(c, name)
if sub(name, 1, 2) == 'p:' and list[1] then leave_lock(c, list[1].g, name) end
orphans(c, now, name, {}, list)
unlock(c, name, list)
forget_reader(c, name)
-- Only for work: a reader that closes because it is idle must not have another one open.
if c.ready > 0 and (not c.parked or deliverable(c)) then wake(c) end
flush()
return 'OK'
