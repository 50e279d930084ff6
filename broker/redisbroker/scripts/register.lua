-- register: a new reader on a queue, with as many of the wanted slots as max_queue_readers leaves.
-- lib: names base
-- KEYS 1: meta of the queue.
-- ARGV 1: now in ms, '' for the server's  2: reader  3: lease ms  4: slots wanted  5: limit over all readers
-- RETURNS the slots granted (0: none, nothing registered), with ' plain' behind when the first turn may be one of plain, or NOENT, OFF, EXISTS (a name is one incarnation, H2).
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return 'NOENT' end
if not can_receive(c) then return 'OFF' end
if call('ZSCORE', c.P .. 'rd', ARGV[2]) then return 'EXISTS' end
local used = 0
local all = call('HGETALL', c.P .. 'sl')
for i = 2, #all, 2 do used = used + tonumber(all[i]) end
local n = math.min(tonumber(ARGV[4]), tonumber(ARGV[5]) - used)
if n <= 0 then return '0' end
call('HDEL', c.P .. 'meta', '_') -- a full Redis lets readers in: they make room
call('ZADD', c.P .. 'rd', int(now + tonumber(ARGV[3])), ARGV[2])
call('HSET', c.P .. 'sl', ARGV[2], int(n))
setdue(c, now + tonumber(ARGV[3]))
c.dirty = true
flush()
return int(n) .. (only_plain(c) and ' plain' or '')
