-- schedule: make, alter or remove the schedules whose service is served by this queue. A schedule that stays the same keeps its
-- armed instant, so applying again neither skips nor doubles a run.
-- lib: names base instant
-- KEYS 1: meta of the queue.
-- ARGV 1: now in ms, '' for the server's  2: number of schedules, then name, record (spec|zone|to|type|key), first instant (see
--   instant) of each.
-- RETURNS how many were made or altered.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return 0 end
local want, changed = {}, 0
local at = 3
for _ = 1, tonumber(ARGV[2]) do
  local name, record, first = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  at = at + 3
  want[name] = true
  if call('HGET', c.P .. 'sdr', name) ~= record then
    call('HSET', c.P .. 'sdr', name, record)
    arm_cron(c, 'sd', name, first_instant(now, first))
    changed = changed + 1
  end
end
for _, name in ipairs(call('HKEYS', c.P .. 'sdr')) do
  if not want[name] then
    for _, k in ipairs({'sdr', 'sdn', 'sdh'}) do call('HDEL', c.P .. k, name) end
    call('ZREM', c.P .. 'sd', name)
    changed = changed + 1
  end
end
if changed > 0 then c.dirty = true end
flush()
return changed
