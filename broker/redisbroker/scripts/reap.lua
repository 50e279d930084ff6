-- reap: a reader whose lease has ended is dead or fenced. Its announced units are counted: exactly when a slot held one, as
-- uncertain when a slot held several; everything goes back, at once and at the front. A lease that was granted by a server which has
-- since been replaced, or started anew, counts nothing: its reader may have done what that server lost.
-- lib: names base history entry lock readers stored foreign waits notify park attempt dead giveback dialog transmit tokens
-- KEYS 1: meta of the queue or sub-queue.
-- ARGV 1: now in ms, '' for the server's  2: reader  3: flags (d direct writes)  4: 1: peek-lock that expired, not a host's death
-- RETURNS LIVE when the lease has not ended, GONE when there is no such reader, else DEAD and for each message of an announced
--   unit: ref, header, counts before, what followed ('uncertain' when not counted).
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return {'GONE'} end
c.direct = find(ARGV[3], 'd', 1, true) ~= nil
local name = ARGV[2]
local lease = call('ZSCORE', c.P .. 'rd', name)
if not lease then return {'GONE'} end
if tonumber(lease) >= now then return {'LIVE'} end
call('HDEL', c.P .. 'meta', '_')
local innocent = tonumber(lease) <= grace(c)
local why = ARGV[4] == '1' and 'LeaseLost: the lock expired before the message was settled' or
  'HostCrash: the host died or stalled past its lease'
local list, per, known, have = units(c, name), {}, {}, {}
for _, r in ipairs(pending(c, name)) do have[r] = true end
for _, u in ipairs(list) do
  per[u.slot] = (per[u.slot] or 0) + 1
  if not innocent then
    for _, r in ipairs(u.refs) do known[r] = true end
  end
end
local out = {'DEAD'}
local shared = ARGV[4] == '1' and list[1] and leave_lock(c, list[1].g, name)
orphans(c, now, name, known, list)
for _, u in ipairs(list) do
  local refs = innocent and {} or present(have, u.refs)
  if #refs > 0 then
    local counted = per[u.slot] == 1
    local atts = call('HMGET', c.P .. 'att', unpack(refs))
    local at = #out
    for i, r in ipairs(refs) do
      local d, p = att_parse(atts[i], c.epoch)
      out[#out + 1] = r
      out[#out + 1] = (read(c, r)) or ''
      out[#out + 1] = int(d) .. ',' .. int(p)
      out[#out + 1] = ''
    end
    local what = fail(c, now, u.g, refs, why, 0, 0, counted, true)
    for i = at + 4, #out, 4 do out[i] = counted and what or 'uncertain' end
  end
end
unlock(c, name, list)
if shared and c.odl == 'end' then forget_ended(c, list[1].g) end
forget_reader(c, name)
wake(c)
flush()
return out
