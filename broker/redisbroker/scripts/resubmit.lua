-- resubmit: one dead letter back to the tail of its queue, or, when it holds up its group (park), in its old place, once: new sequence
-- number, counts from 0, reason and description gone, message id, session, properties and trace context kept, the original number as
-- property parley.resubmitted.
-- lib: names base entry lock stored foreign waits notify park giveback dialog transmit
-- KEYS 1: meta of the queue.
-- ARGV 1: now in ms, '' for the server's  2: sequence number it had  3: new ttl in ms, '' the queue's
-- RETURNS OK and the new number; GONE; OFF; ENDED; LOCKED when a receiver holds it; MALFORMED when
--   it is no message of ours.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return {'NOENT'} end
local d = open(c.P .. 'd:')
local r = call('ZRANGEBYSCORE', d.P .. 'ix', ARGV[2], ARGV[2], 'LIMIT', '0', '1')
if not r[1] then return {'GONE'} end
if not can_send(c) then return {'OFF', c.status} end
local id = r[1]
local h, b = read(d, id)
if not h then return {'GONE'} end
local p = call('XPENDING', d.P .. 's:5', 'w', id, id, '1')
if p[1] and p[1][2] ~= 'backlog' then return {'LOCKED'} end
local f = fields(h)
if f[6] == 'M' or f[13] == 'MalformedEnvelope' and f[5] == '' then return {'MALFORMED'} end
local owner, cseq = f[10], f[11]
local props = f[9]
local mark = 'parley.resubmitted=' .. f[12]
props = props == '' and mark or props .. '&' .. mark
local dialog = owner ~= '' and sub(owner, 1, 2) ~= 's:'
local conv
if dialog then
  conv = conv_get(c, owner)
  if not conv then return {'ENDED'} end
end
local g = f[19] or ''
local place = c.parked and g ~= '' and park().find(c, g, f[12], nil)
consume(d, {id}, 1, 1)
call('HDEL', d.P .. 'att', id)
call('ZREM', d.P .. 'bp', id)
d.ready = d.ready - 1
d.bytes = d.bytes - #b

-- expiry is that of a message which is sent now, as text; none for a dialog message, whose dialog has a lifetime.
local function expiry()
  local t = tonumber(ARGV[3]) or 0
  if c.ttl > 0 and (t == 0 or c.ttl < t) then t = c.ttl end
  if dialog or t == 0 then return '' end
  call('HSET', c.P .. 'meta', 'ttlf', '1')
  not_plain(c)
  return int(now + t)
end

local new
if dialog then c.cvd[owner] = true end
if dialog and (f[6] == 'T' or f[6] == 'E') then
  local at = c.seq + 1
  append_system(c, now, owner, conv, f[6], f[7] .. '|' .. f[8] .. '|' .. props, b, cseq)
  new = int(at)
elseif place then
  new = park().put_back(c, g, owner, place, table.concat({cseq, expiry(), int(now), f[6], f[7], f[8], props}, '|'), b)
  if dialog then conv.w = conv.w + 1 end
elseif dialog then
  new = put(c, conv.lane, owner .. '|' .. int(#b) .. '|' .. cseq .. '||' .. int(now) .. '|' .. f[6] .. '|' .. f[7] .. '|' .. f[8] .. '|' .. props, b)
  conv.w = conv.w + 1
  c.ready = c.ready + 1
  wake(c)
else
  new = append_plain(c, now, owner, ARGV[3], f[7] .. '|' .. f[8] .. '|' .. props, b)
end
flush()
return {'OK', new}
