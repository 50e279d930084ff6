-- txhead: the transmitter's look at one transmission stream: the oldest entry that is still wanted, under a lease.
-- lib: names base ids stored
-- KEYS 1: meta of the source queue.
-- ARGV 1: now in ms, '' for the server's  2: target  3: transmitter  4: lease ms, and when the target has called an entry behind:
--   5: its id  6: its digest  7: the era it was sent in  8: a name for a new era
-- RETURNS EMPTY; WAIT and the ms of the next try, or of the end of another's lease; ENTRY, its id, its digest, the era to send it in,
--   1 when it was refused before for a gap, and its flat fields.
-- A server that lost its last writes may have an entry that it had sent before, or give an id again. The target then has seen what comes
-- later; it calls the entry behind. If that is still the head, a new era begins: a name of its own for this stream at the target. What is
-- moved in it may come twice, so an event tells.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return {'EMPTY'} end
local P, target, me = c.P, ARGV[2], ARGV[3]
local function digest(f) return redis.sha1hex(table.concat(f, '\n')) end
-- No lease and no pause is longer than 64 s: what is further away was noted before the clock was set back, and is over.
local function ahead(at) return tonumber(at) > now and tonumber(at) <= now + 64000 end
local l = call('HGET', P .. 'txl', target)
if l then
  local f = fields(l)
  if f[1] ~= me and ahead(f[2]) then return {'WAIT', f[2]} end
end
local s, gap = call('HGET', P .. 'txs', target), nil
if s then
  local f = fields(s)
  if ahead(f[1]) then return {'WAIT', f[1]} end
  gap = f[4]
end
call('HSET', P .. 'txl', target, me .. '|' .. int(now + tonumber(ARGV[4])))

-- An empty stream stays: its last id is what keeps ids growing, whatever the server's clock does, and the target takes an id that is
-- not above the last for a repeat.
-- Entries of a conversation that ended with an error are dropped here, at most 1,000 a look (EC-8).
for _ = 1, 1000 do
  local r = call('XRANGE', P .. 'tx:' .. target, '-', '+', 'COUNT', '1')
  if not r[1] then
    call('HDEL', P .. 'txs', target)
    call('HDEL', P .. 'txl', target)
    flush()
    return {'EMPTY'}
  end
  local id, f = r[1][1], r[1][2]
  local from, k
  for i = 1, #f, 2 do
    if f[i] == 'from' then from = f[i + 1] elseif f[i] == 'k' then k = f[i + 1] end
  end
  local upto = from and call('HGET', P .. 'txd', from)
  if not upto or id_after(id, upto) then
    local era, mark = call('HGET', P .. 'txe', target) or '', digest(f)
    if ARGV[5] and ARGV[5] == id and ARGV[6] == mark and ARGV[7] == era then
      era = ARGV[8]
      call('HSET', P .. 'txe', target, era)
      event(c, now, 'transmission_repeats', 'target', plain_text(target))
    end
    flush()
    return {'ENTRY', id, mark, era, gap == mark and '1' or '0', unpack(f)}
  end
  call('XDEL', P .. 'tx:' .. target, id)
  if id == upto then call('HDEL', P .. 'txd', from) end
end
return {'WAIT', int(now)}
