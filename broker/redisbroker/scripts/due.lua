-- due: promote what is due: retries, timers, scheduled messages, lifetimes, closed endpoints; call for a reader where that is due
-- (external activation); name the readers whose lease ended.
-- lib: names base history entry lock stored foreign waits notify park giveback dialog transmit instant
-- KEYS 1: meta of the queue.
-- ARGV 1: now in ms, '' for the server's  2: flags (d direct writes)  3: how many of each kind at most
-- RETURNS next due ms (0: none), number promoted, 1 when more of it is due, number of expired readers, now, 1 when the clock was set
--   back since an instant by cron was armed (see instant), 1 when something waits for transmission, the names of these readers, then
--   kind (tm or sd), name, cron record and planned instant of each repeating timer and schedule that fired and is to be armed again
--   (rearm). One that nobody arms is named again after 5 s, so the death of a host stops no schedule; NOENT.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return {'NOENT'} end
c.direct = find(ARGV[2], 'd', 1, true) ~= nil
local max = tonumber(ARGV[3])
local P, promoted, more = c.P, 0, false
call('HDEL', P .. 'meta', '_')
grace(c)

local function upto(key)
  local r = call('ZRANGEBYSCORE', P .. key, '-inf', int(now), 'LIMIT', '0', int(max))
  if #r == max then more = true end
  return r
end

-- rested ends a group's pause. Of each list those that were put back for it stand in front.
local function rested(g)
  local back_refs = {}
  for _, l in ipairs({'t', 'e', 's'}) do
    for _, r in ipairs(call('LRANGE', P .. 'b:' .. g .. ':' .. l, 0, 999)) do
      local key, id = lane_of(c, r)
      local p = call('XPENDING', key, 'w', id, id, '1')
      if p[1] and p[1][2] == 'retry' then
        back_refs[#back_refs + 1] = r
      else -- one of a conversation that ended meanwhile may stand in between
        local head = read(c, r)
        local owner = head and owner_of(head)
        if head and (byte(owner, 2) == 58 or conv_get(c, owner)) then break end
      end
    end
  end
  if #back_refs > 0 then rename(c, back_refs, 1, #back_refs, 'backlog') end
  c.retrying = c.retrying - #back_refs
  c.ready = c.ready + #back_refs
  local _, _, w = lock_parse(lock_get(c, g))
  free(c, g, w)
end

for _, m in ipairs(upto('retry')) do
  call('ZREM', P .. 'retry', m)
  if find(m, ':', 1, true) then
    rested(m)
  else
    back_plain(c, {m})
    c.retrying = c.retrying - 1
    c.ready = c.ready + 1
  end
  promoted = promoted + 1
  c.dirty = true
end
local fired = {}

-- again_later names a repeating timer for rearm, and keeps it until that has happened.
local function again_later(kind, name, record, planned)
  call('HSET', P .. kind .. 'n', name, planned)
  call('ZADD', P .. kind, int(now + 5000), name)
  note_planned(c)
  fired[#fired + 1] = kind; fired[#fired + 1] = name; fired[#fired + 1] = record; fired[#fired + 1] = planned
end

-- run_schedule sends one planned run on the dialog that the schedule owns: its far side is the system (parley/schedule/<name>).
-- When the handler has ended that dialog, the next run begins another.
local function run_schedule(name, planned)
  local f = fields(call('HGET', P .. 'sdr', name))
  local to, typ, serial = f[3], f[4], tonumber(call('HGET', P .. 'sdh', name) or 0)
  local far = 'parley/schedule/' .. name
  local function handle(n) return fmt('00000000-%04x-4%03x-8000-%s', n % 65536, floor(n / 65536) % 4096, f[5]) end
  if call('HEXISTS', P .. 'ed', far_handle(c, handle(serial))) == 1 then
    serial = serial + 1
    call('HSET', P .. 'sdh', name, int(serial))
  end
  local h = handle(serial)
  local conv = conv_get(c, far_handle(c, h))
  arrive(c, now, {from = h, role = 'I', svc = far, to = to, toh = '', contract = 'DEFAULT', expires = '', seq = conv and conv.rcv or 0,
    k = 'S', rest = name .. '@' .. planned .. '|' .. typ .. '|parley.planned=' .. planned .. '&parley.schedule=' .. name, body = ''})
end
if can_send(c) then
  for _, id in ipairs(upto('sch')) do
    local v = call('HGET', P .. 'schm', id)
    call('ZREM', P .. 'sch', id)
    call('HDEL', P .. 'schm', id)
    if v then
      local owner, ttl, rest, body = string.match(v, '^([^\n]*)\n([^\n]*)\n([^\n]*)\n(.*)$')
      append_plain(c, now, owner, ttl, rest, body)
    end
    c.scheduled = c.scheduled - 1
    promoted = promoted + 1
    c.dirty = true
  end
  for _, h in ipairs(upto('tm')) do
    local at = int(tonumber(call('ZSCORE', P .. 'tm', h)))
    local cron = call('HGET', P .. 'tmc', h)
    local waits = cron and call('HGET', P .. 'tmn', h)
    call('ZREM', P .. 'tm', h)
    local conv = conv_get(c, h)
    if conv and not waits then
      append_system(c, now, h, conv, 'T', T_TIMER, '')
      promoted = promoted + 1
    end
    if conv and cron then again_later('tm', h, cron, waits or at) end
    c.dirty = true
  end
  for _, name in ipairs(upto('sd')) do
    local at = int(tonumber(call('ZSCORE', P .. 'sd', name)))
    local waits = call('HGET', P .. 'sdn', name)
    local record = call('HGET', P .. 'sdr', name)
    call('ZREM', P .. 'sd', name)
    if record then
      if not waits then
        run_schedule(name, at)
        promoted = promoted + 1
      end
      again_later('sd', name, record, waits or at)
    end
    c.dirty = true
  end
  for _, h in ipairs(upto('lt')) do
    call('ZREM', P .. 'lt', h)
    local conv = conv_get(c, h)
    if conv then
      local ep = ep_get(c, h)
      if conv.txn > 0 and ep then drop_waiting(c, h, conv, ep) end
      broker_error(c, now, h, conv, '-8489', 'The dialog has exceeded the specified LIFETIME.')
      promoted = promoted + 1
    end
    c.dirty = true
  end
end
for _, h in ipairs(upto('cl')) do
  call('ZREM', P .. 'cl', h)
  call('HDEL', P .. 'ep', h)
  call('HDEL', P .. 'ed', h)
  call('HDEL', P .. 'cw', h)
  c.dirty = true
end
local call_again = c.actq and activate(c)
local dead = call('ZRANGEBYSCORE', P .. 'rd', '-inf', '(' .. int(now), 'LIMIT', '0', int(max))
local next_due = 0
for _, k in ipairs({'retry', 'sch', 'tm', 'sd', 'lt', 'cl', 'rd'}) do
  if can_send(c) or k == 'retry' or k == 'cl' or k == 'rd' then
    local r = call('ZRANGE', P .. k, 0, 0, 'WITHSCORES')
    if r[2] then
      local s = tonumber(r[2])
      if k == 'rd' then s = s + 1 end
      if next_due == 0 or s < next_due then next_due = s end
    end
  end
end
if call_again and (next_due == 0 or call_again < next_due) then next_due = call_again end
if next_due ~= c.nextdue then c.nextdue = next_due; c.dirty = true end
flush()
local armed = call('HGET', P .. 'meta', 'planned')
local out = {int(next_due), int(promoted), more and '1' or '0', int(#dead), the_time_text, armed and tonumber(armed) > now and '1' or '0',
  int(call('EXISTS', P .. 'txs'))}
for _, d in ipairs(dead) do out[#out + 1] = d end
for _, f in ipairs(fired) do out[#out + 1] = f end
return out
