-- repair: mends what audit found wrong in one entity, unless it changed since audit looked. Nothing that is right is touched.
-- lib: names base entry lock readers stored foreign waits notify park giveback
-- KEYS 1: meta of the queue or sub-queue.
-- ARGV 1: now in ms, '' for the server's  2: the change counter that audit saw  3: number of steps, each kind, a, b:
--   unlist g ref: the backlog of g forgets ref · unback ref: bp forgets ref · unrest name: retry forgets name · gone stream id: a pending
--   entry that is not there is acknowledged, and counted as lost · stray ref: an entry that nobody would deliver waits again, in its place ·
--   ghost name: what a reader holds that is not registered waits again, uncounted · unhold g: nobody holds g · group g: its lock, ready and
--   retry are made to agree with its backlog · unpark g number: that dead letter holds up g no more · unschedule number: an instant without
--   a message goes · schedule number: a message without an instant is due now · index: the index of a sub-queue is made from its entries ·
--   counter name value: a counter of meta is set
-- RETURNS NOENT, MOVED (nothing was done), or REPAIRED and the number of steps.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return {'NOENT'} end
if c.chg ~= ARGV[2] then return {'MOVED'} end
call('HDEL', c.P .. 'meta', '_')
local counters = {}

-- claim makes an entry pending for name, also one that is pending for nobody.
local function claim(ref, name)
  local key, id = lane_of(c, ref)
  call('XCLAIM', key, 'w', name, 0, id, 'FORCE', 'JUSTID')
end

-- insert puts ref where it belongs in the backlog of its group.
local function insert(g, ref)
  local key, at = c.P .. 'b:' .. g .. ':' .. list_of(ref), 0
  repeat
    local page = call('LRANGE', key, at, at + 999)
    for _, r in ipairs(page) do
      if place_of(r) > place_of(ref) then
        call('LINSERT', key, 'BEFORE', r, ref)
        return
      end
    end
    at = at + 1000
  until #page < 1000
  call('RPUSH', key, ref)
end

local fix = {}

-- group makes what is known of g agree with its backlog.
function fix.group(g)
  if g == '' then return end
  local refs = {}
  for _, l in ipairs({'t', 'e', 's'}) do
    for _, r in ipairs(call('LRANGE', c.P .. 'b:' .. g .. ':' .. l, 0, -1)) do refs[#refs + 1] = r end
  end
  local holder, shared = lock_parse(lock_get(c, g)), nil
  for _, token in ipairs(call('ZRANGE', c.P .. 'tk:' .. g, 0, -1)) do
    if not call('ZSCORE', c.P .. 'rd', token) then call('ZREM', c.P .. 'tk:' .. g, token) else shared = shared or token end
  end
  holder = shared or holder
  local rests = call('ZSCORE', c.P .. 'retry', g)
  if holder ~= '' and call('ZSCORE', c.P .. 'rd', holder) then
    lock_set(c, g, held_value(holder, #refs))
    rests = false
  elseif c.parked and call('HEXISTS', c.P .. 'pk', g) == 1 then
    lock_set(c, g, '!' .. int(#refs))
    rests = false
  elseif rests and #refs > 0 then
    lock_set(c, g, '~' .. int(#refs))
  else
    rests = false
    free(c, g, #refs)
  end
  if not rests then call('ZREM', c.P .. 'retry', g) end
  if sub(lock_get(c, g) or '', 1, 1) ~= '-' then call('ZREM', c.P .. 'ready', g) end
  if #refs > 0 then rename(c, refs, 1, #refs, rests and 'retry' or 'backlog') end
end

function fix.unlist(g, ref) call('LREM', c.P .. 'b:' .. g .. ':' .. list_of(ref), 1, ref) end
function fix.unback(ref) call('ZREM', c.P .. 'bp', ref) end
function fix.unrest(name) call('ZREM', c.P .. 'retry', name) end
function fix.unhold(g) lock_set(c, g, false) end
function fix.unpark(g, number) park().drop(c, g, number, nil) end

function fix.gone(stream, id)
  call('XACK', c.P .. stream, 'w', id)
  call('HINCRBY', c.P .. 'meta', 'lost', 1)
end

function fix.stray(ref)
  local head = read(c, ref)
  if not head then return end
  local g = group_of(c, head)
  if c.kind ~= 'q' then g = '' end
  if not g then
    consume(c, {ref}, 1, 1)
  elseif g == '' then
    claim(ref, 'backlog')
    call('ZADD', c.P .. 'bp', int(seq_of(ref)), ref)
    wake(c)
  else
    claim(ref, 'backlog')
    insert(g, ref)
    fix.group(g)
  end
end

function fix.ghost(name)
  for _, ref in ipairs(pending(c, name)) do fix.stray(ref) end
  forget_reader(c, name)
end

function fix.unschedule(number)
  call('ZREM', c.P .. 'sch', number)
  call('HINCRBY', c.P .. 'meta', 'lost', 1)
end

function fix.schedule(number)
  call('ZADD', c.P .. 'sch', int(now), number)
  setdue(c, now)
end

function fix.index()
  call('DEL', c.P .. 'ix')
  local from = '-'
  repeat
    local page = call('XRANGE', c.P .. 's:5', from, '+', 'COUNT', '100')
    for _, e in ipairs(page) do
      call('ZADD', c.P .. 'ix', fields(e[2][1])[12] or seq_of(e[1]), e[1])
      local ms, n = string.match(e[1], '^(%d+)-(%d+)$')
      from = ms .. '-' .. int(tonumber(n) + 1)
    end
  until #page < 100
end

function fix.counter(name, value) counters[#counters + 1] = {name, value} end

local n = tonumber(ARGV[3])
for i = 4, 3 + 3 * n, 3 do fix[ARGV[i]](ARGV[i + 1], ARGV[i + 2]) end
c.dirty = true
flush()
for _, x in ipairs(counters) do call('HSET', c.P .. 'meta', x[1], x[2]) end
local main = c.kind == 'q' and c or open(sub(c.P, 1, -3))
event(main or c, now, 'repaired', 'steps', int(n), 'entity', c.kind == 'q' and 'queue' or sub(c.P, -2, -2) == 'd' and 'dead-letter queue' or
  'transfer dead-letter queue')
return {'REPAIRED', int(n)}
