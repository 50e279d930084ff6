-- work: effects of a caller outside a handler, as one unit of work that received nothing: begin, send, end, timer, move.
-- lib: names base entry lock producers stored foreign waits notify park attempt dead giveback dialog retain transmit instant scheduled effects
-- KEYS 1: meta of the queue whose conversations are meant.
-- ARGV 1: now in ms, '' for the server's  2: flags (d direct writes)  3: namespace  4: producer  5: its counter
--   6: number of effects, then the effects.
-- RETURNS OK and the sequence numbers sends got, the same again for a repeat; or ERR and the error code; NOENT.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return {'NOENT'} end
local direct = find(ARGV[2], 'd', 1, true) ~= nil
c.direct = direct
local X = {ns = ARGV[3], direct = direct, now = now, sh = {}}
local producer, n = ARGV[4], tonumber(ARGV[6])
local last = call('HGET', c.P .. 'pc', producer)
if last then
  local f = fields(last)
  if f[1] == ARGV[5] then
    pcall_('HSET', c.P .. 'pc', producer, last) -- a server may let a WAIT behind a repeat wait for its own writes only
    local out = {'OK'}
    for s in string.gmatch(f[2], '%d+') do out[#out + 1] = s end
    return out
  end
end
if not last then forget_producers(c, now) end
local bad = check_all(c, X, 7, n, {''})
if bad[1] then return {'ERR', bad[1]} end
-- A full Redis lets a conversation end and a timer be cancelled: that makes room.
local effects = 7
local kind = ARGV[effects + 1]
if n == 1 and (kind == 'E' or kind == 'X') then call('HDEL', c.P .. 'meta', '_') end
local answers = apply_all(c, X, 7, n, bad)
local out = {'OK'}
for i = 1, n do if answers[i] then out[#out + 1] = int(answers[i]) end end
call('HSET', c.P .. 'pc', producer, ARGV[5] .. '|' .. table.concat(out, ' ', 2) .. '|' .. int(now))
flush()
return out
