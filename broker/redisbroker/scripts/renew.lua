-- renew: prolong a reader's lease. An expired lease is lost, even when nobody has reaped it yet.
-- lib: names base
-- KEYS 1: meta of the queue or sub-queue.
-- ARGV 1: now in ms, '' for the server's  2: reader  3: lease ms  4: number of the reader's last answered call that settled or handed
--   out something (see turn), '' of a token
-- RETURNS the end of the lease in ms, or FENCED. A record with a lower number than the reader knows of is a server that lost its last
--   writes; a turn that runs beside may have raised it.
local now = clock(ARGV[1])
local P = sub(KEYS[1], 1, -5)
local lease = call('ZSCORE', P .. 'rd', ARGV[2])
if not lease or tonumber(lease) < now then return 'FENCED' end
if ARGV[4] ~= '' then
  local number = string.match(call('HGET', P .. 'win', ARGV[2]) or '#0', '^#(%d+)')
  if tonumber(number or 0) < tonumber(ARGV[4]) then return 'FENCED' end
end
call('HDEL', P .. 'meta', '_') -- or a full Redis would refuse, and the reader lose what it works on
local e = int(now + tonumber(ARGV[3]))
call('ZADD', P .. 'rd', e, ARGV[2])
return e
