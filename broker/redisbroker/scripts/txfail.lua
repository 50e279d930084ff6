-- txfail: the target refused the head of a transmission stream; it waits 4, 8, 16, 32, then 64 s (TX-2).
-- lib: names base stored
-- KEYS 1: meta of the source queue.
-- ARGV 1: now in ms, '' for the server's  2: target  3: transmitter  4: status text  5: digest of the head when it was
--   refused for a gap in its conversation, else ''
-- RETURNS the ms of the next try, or LOST.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return 'LOST' end
local l = call('HGET', c.P .. 'txl', ARGV[2])
if not l or fields(l)[1] ~= ARGV[3] then return 'LOST' end
local s = call('HGET', c.P .. 'txs', ARGV[2])
local n = s and tonumber(fields(s)[2]) or 0
local rest = math.min(64, 4 * 2 ^ n) * 1000
call('HSET', c.P .. 'txs', ARGV[2], int(now + rest) .. '|' .. int(n + 1) .. '|' .. ARGV[4] .. (ARGV[5] ~= '' and '|' .. ARGV[5] or ''))
call('HDEL', c.P .. 'txl', ARGV[2])
flush()
return int(now + rest)
