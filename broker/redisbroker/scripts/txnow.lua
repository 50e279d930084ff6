-- txnow: a target is reachable again (it was turned on, or a service appeared): try at once, with back-off from the start.
-- lib: names base stored
-- KEYS 1: meta of the source queue.
-- ARGV 1: now in ms, '' for the server's  2: target
-- RETURNS 1 when something waits for that target, else 0.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return 0 end
local s = call('HGET', c.P .. 'txs', ARGV[2])
if not s then return 0 end
call('HDEL', c.P .. 'meta', '_')
call('HSET', c.P .. 'txs', ARGV[2], int(now) .. '|0|' .. (fields(s)[3] or ''))
return 1
