-- resume: after a call whose outcome is unknown (H3) a reader goes on under a new name. Units it knows and still holds move to the
-- new name; everything else the old name held is given back uncounted; the old name is fenced from now on.
-- lib: names base entry lock readers stored foreign waits notify giveback
-- KEYS 1: meta of the queue or sub-queue.
-- ARGV 1: now in ms, '' for the server's  2: old name  3: new name  4: lease ms  5: number of the last answered call that settled or
--   handed out something (see turn)  6: number of the call whose outcome is unknown, '' when it was never sent
--   7: number of known units, then for each: slot, refs joined by commas, group, 1 when that call would have settled it
-- RETURNS OK; the number in the record, which the new name has from now on: that of the unknown call says that it was done; the
--   results of that call that were not plain commits, joined by lines, '' when there are none or it was not done; and the numbers of
--   the known units that are still held. FENCED when the old name is gone and the new one unknown, or the record has another number
--   than these two: the server has lost what this reader knows.
-- Repeating the same (old, new) answers what the new name holds.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return {'FENCED'} end
local old, new, last, unknown, n = ARGV[2], ARGV[3], ARGV[5], ARGV[6], tonumber(ARGV[7])
call('HDEL', c.P .. 'meta', '_')
local lease = call('ZSCORE', c.P .. 'rd', old)
local repeated = call('ZSCORE', c.P .. 'rd', new)
if not repeated and (not lease or tonumber(lease) < now) then return {'FENCED'} end
local holder_name = repeated and new or old
local number = string.match(call('HGET', c.P .. 'win', holder_name) or '#0', '^#([^\n]*)')
local was_done = number == unknown
if not was_done and number ~= last then return {'FENCED'} end
local said, results = call('HGET', c.P .. 'lr', holder_name) or '', ''
if was_done and string.match(said, '^[^\n]*') == unknown then results = sub(said, #unknown + 2) end
local out = {'OK', number, results}
local have, win = {}, {}
for _, r in ipairs(pending(c, holder_name)) do have[r] = true end
local mine, list = {}, units(c, old) -- as it was before anything moved
for i = 1, n do
  local slot, joined, g, settled = ARGV[4 + 4 * i], ARGV[5 + 4 * i], ARGV[6 + 4 * i], was_done and ARGV[7 + 4 * i] == '1'
  local all = {}
  for r in string.gmatch(joined, '[^,]+') do all[#all + 1] = r end
  local refs = present(have, all)
  if #refs == #all and #refs > 0 and not settled and (g == '' or lock_parse(lock_get(c, g)) == holder_name) then
    out[#out + 1] = int(i)
    for _, r in ipairs(refs) do mine[r] = true end
    if not repeated then
      rename(c, refs, 1, #refs, new)
      if g ~= '' then
        local _, _, w = lock_parse(lock_get(c, g))
        lock_set(c, g, held_value(new, w))
      end
      win[#win + 1] = slot .. ' ' .. joined .. ' ' .. g .. '\n'
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
  call('HSET', c.P .. 'win', new, '#' .. number .. '\n' .. table.concat(win))
  if results ~= '' then call('HSET', c.P .. 'lr', new, unknown .. '\n' .. results) end
  wake(c)
end
flush()
return out
