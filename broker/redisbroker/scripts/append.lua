-- append: store messages of one producer in one queue, in order, all or none.
-- lib: names base entry producers stored waits notify
-- KEYS 1: meta of the queue.
-- ARGV 1: now in ms, '' for the server's  2: producer name  3: counter of the first message of this call  4: number of messages,
--   then for each: owner ('' or s:<session>), ttl ms or '', delay ms or '', absolute due ms or '', rest, body.
-- RETURNS OK and the sequence number of the first, or for a repeat SAME and that number; OFF; NOENT; DUP when the counter is
--   older than the last call of this producer.
-- The counter of a producer unused for an hour is dropped when a new one comes.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return {'NOENT'} end
local producer, first, n = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local last = call('HGET', c.P .. 'pc', producer)
if last then
  local f = fields(last)
  if tonumber(f[1]) == first then return {'SAME', f[2]} end
  if tonumber(f[1]) > first then return {'DUP'} end
end
if not can_send(c) then return {'OFF', c.status} end
if not last then forget_producers(c, now) end
local from = c.seq + 1
local at = 5
for i = 1, n do
  local delay, due = ARGV[at + 2], ARGV[at + 3]
  local id
  if delay ~= '' or due ~= '' then
    id = append_scheduled(c, due ~= '' and math.max(tonumber(due), now) or now + tonumber(delay), ARGV[at], ARGV[at + 1], ARGV[at + 4], ARGV[at + 5])
  else
    id = append_plain(c, now, ARGV[at], ARGV[at + 1], ARGV[at + 4], ARGV[at + 5])
  end
  if i == 1 then from = tonumber(id) end
  at = at + 6
end
call('HSET', c.P .. 'pc', producer, int(first) .. '|' .. int(from) .. '|' .. int(now))
flush()
return {'OK', int(from)}
