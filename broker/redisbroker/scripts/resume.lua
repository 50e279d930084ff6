-- resume: after a call whose outcome is unknown (H3) a reader goes on under a new name. Units it knows and still holds move to the
-- new name; everything else the old name held is given back uncounted; the old name is fenced from now on.
-- lib: names base entry lock readers stored waits notify giveback
-- KEYS 1: meta of the queue or sub-queue.
-- ARGV 1: now in ms, '' for the server's  2: old name  3: new name  4: lease ms  5: number of the call whose outcome is unknown
--   6: number of known units, then for each: slot, refs joined by commas, group, 1 when that call would have settled it
-- RETURNS OK; the results of that call that were not plain commits, joined by lines, '' when there are none or it was not done;
--   and the numbers of the known units that are still held. FENCED when the old name is gone and the new one unknown.
-- Repeating the same (old, new) answers what the new name holds.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return {'FENCED'} end
local old, new, callno, n = ARGV[2], ARGV[3], ARGV[5], tonumber(ARGV[6])
call('HDEL', c.P .. 'meta', '_')
local lease = call('ZSCORE', c.P .. 'rd', old)
local repeated = call('ZSCORE', c.P .. 'rd', new)
-- The call was done when its number stands in the record, or with its results: then what it settled is not held, even when the same
-- messages were handed out again at once.
local record = call('HGET', c.P .. 'win', repeated and new or old) or ''
local said = call('HGET', c.P .. 'lr', repeated and new or old) or ''
local results = ''
local was_done = string.match(record, '^#([^\n]*)') == callno
if string.match(said, '^[^\n]*') == callno then
  was_done = true
  results = sub(said, #callno + 2)
end
local known = {}
for i = 1, n do
  local u = {slot = ARGV[3 + 4 * i], refs = {}, g = ARGV[5 + 4 * i], settled = was_done and ARGV[6 + 4 * i] == '1'}
  for r in string.gmatch(ARGV[4 + 4 * i], '[^,]+') do u.refs[#u.refs + 1] = r end
  known[i] = u
end
local out = {'OK', results}
if not repeated and (not lease or tonumber(lease) < now) then return {'FENCED'} end
local holder_name = repeated and new or old
local have, win = {}, {}
for _, r in ipairs(pending(c, holder_name)) do have[r] = true end
local mine, list = {}, units(c, old) -- as it was before anything moved
for i, u in ipairs(known) do
  local refs = present(have, u.refs)
  local ok = #refs == #u.refs and #refs > 0 and not u.settled
  if ok and u.g ~= '' then
    local h = lock_parse(lock_get(c, u.g))
    ok = h == holder_name
  end
  if ok then
    out[#out + 1] = int(i)
    for _, r in ipairs(u.refs) do mine[r] = true end
    if not repeated then
      rename(c, u.refs, 1, #u.refs, new)
      if u.g ~= '' then
        local _, _, w = lock_parse(lock_get(c, u.g))
        lock_set(c, u.g, held_value(new, w))
      end
      win[#win + 1] = u.slot .. ' ' .. ARGV[4 + 4 * i] .. ' ' .. u.g .. '\n'
    end
  end
end
if not repeated then
  local slots = call('HGET', c.P .. 'sl', old)
  orphans(c, now, old, mine, list)
  unlock(c, old, list)
  forget_reader(c, old)
  call('ZADD', c.P .. 'rd', int(now + tonumber(ARGV[4])), new)
  if slots then call('HSET', c.P .. 'sl', new, slots) end
  if #win > 0 then call('HSET', c.P .. 'win', new, '#' .. (was_done and callno or '') .. '\n' .. table.concat(win)) end
  if results ~= '' then call('HSET', c.P .. 'lr', new, callno .. '\n' .. results) end
  wake(c)
end
flush()
return out
