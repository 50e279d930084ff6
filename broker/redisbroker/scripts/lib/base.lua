-- base: the clock, contexts of entities, wake-ups.
-- A context is one entity (a queue or a sub-queue) as this script sees it: its meta hash and caches of what it touched.
-- All changes of meta, locks and endpoints are made in the context and written once, by flush.
-- rare holds the functions of the parts in scripts/rare, which few calls need: making the closures of all of them would cost a call
-- more than what it does for one message. A part is run, and so its functions defined, when one of them is first called.
local rare_parts = {}
local rare = setmetatable({}, {__index = function(defined, name)
  while #rare_parts > 0 do
    table.remove(rare_parts)()
    local f = rawget(defined, name)
    if f then return f end
  end
end})

local the_time, the_time_text = 0, '0'
local function clock(override)
  if override ~= '' then
    the_time = tonumber(override)
  else
    local t = call('TIME')
    the_time = tonumber(t[1]) * 1000 + floor(tonumber(t[2]) / 1000)
  end
  the_time_text = fmt('%d', the_time)
  return the_time
end

-- plain_text undoes the escaping of names inside records.
local function plain_text(s)
  return (string.gsub(s, '%%(%x%x)', function(h) return string.char(tonumber(h, 16)) end))
end

local function int(n) return fmt('%d', n) end

-- What few calls need of meta, read when the first of these is asked for.
local rest_of = {__index = function(c, field)
  setmetatable(c, nil)
  local v = call('HMGET', c.P .. 'meta', 'epoch', 'retrying', 'scheduled', 'retained', 'maxdel', 'poison', 'pscope', 'ri', 'rm', 'rx',
    'rj', 'dttl', 'qn', 'lost', 'odl', 'name', 'archive', 'notify', 'parked', 'act')
  c.epoch, c.pscope, c.dttl, c.qn, c.odl, c.name = v[1], v[7], v[12] == '1', v[13], v[15] or 'continue', v[16] or ''
  c.retrying, c.scheduled, c.retained = tonumber(v[2] or 0), tonumber(v[3] or 0), tonumber(v[4] or 0)
  c.maxdel, c.poison, c.ri, c.rm = tonumber(v[5] or 0), tonumber(v[6] or 0), tonumber(v[8] or 0), tonumber(v[9] or 0)
  c.rx, c.rj, c.lost, c.archive, c.notify = tonumber(v[10] or 2), tonumber(v[11] or 0), tonumber(v[14] or 0), v[17] == '1', v[18]
  c.parked, c.act = v[19] and tonumber(v[19]), v[20]
  c.was = {retrying = c.retrying, scheduled = c.scheduled, retained = c.retained}
  return c[field]
end}
local ctxs = {}

-- open reads what nearly every call needs of meta.
local function open(P)
  local c = ctxs[P]
  if c ~= nil then return c end
  local v = call('HMGET', P .. 'meta', 'status', 'seq', 'ready', 'locked', 'bytes', 'nextdue', 'chg', 'asleep', 'ttlf', 'hasstate', 'shared',
    'lanes', 'kind', 'pcount', 'ttl', 'age', 'retention', 'actq', 'plain', 'tx', 'tops')
  if not v[1] then
    ctxs[P] = false
    return false
  end
  local seq, ready, locked = tonumber(v[2] or 0), tonumber(v[3] or 0), tonumber(v[4] or 0)
  local bytes, due, tx = tonumber(v[5] or 0), tonumber(v[6] or 0), tonumber(v[20] or 0)
  c = {P = P, status = v[1], seq = seq, ready = ready, locked = locked, bytes = bytes, nextdue = due, tx = tx, chg = v[7] or 0,
    seq_was = seq, ready_was = ready, locked_was = locked, bytes_was = bytes, due_was = due, tx_was = tx, was = false,
    asleep = v[8] == '1', ttlf = v[9] == '1', hasstate = v[10] == '1', shared = v[11] == '1', lanes = v[12] or '5', kind = v[13] or 'q',
    pcount = tonumber(v[14] or 0), ttl = tonumber(v[15] or 0), age = tonumber(v[16] or 0), retention = v[17] == '1', actq = v[18] ~= '' and v[18],
    plain = v[19] == '1', tops = v[21] ~= '' and v[21], top = false, tops_moved = false, parking = false, passing = false,
    lock = {}, lockd = {}, cv = {}, cvd = {}, eps = {}, dirty = false, direct = false}
  ctxs[P] = setmetatable(c, rest_of)
  return c
end

local function can_receive(c) return c.status == 'active' or c.status == 'send_disabled' end
-- only_plain says that nothing but plain messages can be waiting and that nothing has to be done with them on the way, so that their
-- bodies need not be read by a script (see plain.lua). What waits again, in bp, is not looked at.
local function only_plain(c) return c.plain and can_receive(c) end

-- not_plain notes that this is so no more: from now on scripts look at every message.
local function not_plain(c)
  if c.plain then
    c.plain = false
    call('HSET', c.P .. 'meta', 'plain', '0')
  end
end

local function can_send(c) return c.status == 'active' or c.status == 'receive_disabled' end

-- lanes_of names all lanes of c: back is there once a dead letter has parked a group.
local function lanes_of(c) return (c.parked and 'sys,back,' or 'sys,') .. c.lanes end

local function namespace(P) return string.match(P, '^{([^/]*)/') end

-- publish sends a hint. It comes after writes, so it must not fail the script: a refused one is lost, and costs time only.
local function publish(c, text) pcall_('PUBLISH', 'parley:' .. namespace(c.P) .. ':wake', text) end

-- stir has flush see whether a reader must be called from outside (external activation).
local stirred
local function stir(c)
  stirred = stirred or {}
  stirred[#stirred + 1] = c
end

-- wake tells sleeping readers that something became deliverable (H12). Costs nothing on a busy queue.
local function wake(c)
  if c.asleep then
    call('HSET', c.P .. 'meta', 'asleep', '0')
    c.asleep = false
    publish(c, 'w ' .. c.P)
  end
  if c.actq then stir(c) end
end

-- setdue notes that something of c is due at ms, and tells the keepers when that is sooner than they know.
local function setdue(c, ms)
  if c.nextdue == 0 or ms < c.nextdue then
    c.nextdue = ms
    c.dirty = true
    publish(c, 'd ' .. int(ms) .. ' ' .. c.P)
  end
end

local function event(c, now, kind, ...)
  call('XADD', c.P .. 'events', 'MAXLEN', '~', '10000', '*', 'type', kind, 'queue', c.name, 'time', int(now), ...)
  publish(c, 'e ' .. c.P)
end

-- batched HSET and HDEL: Lua's unpack stops near 8,000 values.
local function hset(key, t, n)
  for i = 1, n, 4000 do call('HSET', key, unpack(t, i, math.min(i + 3999, n))) end
end
local function hdel(key, t, n)
  for i = 1, n, 4000 do call('HDEL', key, unpack(t, i, math.min(i + 3999, n))) end
end

-- PAD is longer than what Redis keeps in a small hash. A small hash is searched from its start for every field, so one with the locks
-- of a whole turn is made a real one: writing a long value does that, and it stays so while the key exists.
local PAD = '.................................................................'

local function flush_locks(c)
  local set, ns, del, nd = {}, 0, {}, 0
  for g in pairs(c.lockd) do
    local v = c.lock[g]
    if v then
      set[ns + 1] = g; set[ns + 2] = v; ns = ns + 2
    else
      nd = nd + 1; del[nd] = g
    end
  end
  if ns >= 16 then
    set[ns + 1] = ''; set[ns + 2] = PAD; ns = ns + 2
    nd = nd + 1; del[nd] = ''
  end
  if ns > 0 then hset(c.P .. 'lock', set, ns) end
  if nd > 0 then hdel(c.P .. 'lock', del, nd) end
  c.lockd = {}
end

local function flush_conversations(c)
  local set, ns, del, nd = {}, 0, {}, 0
  for h in pairs(c.cvd) do
    local v = c.cv[h]
    if v then
      set[ns + 1] = h
      set[ns + 2] = table.concat({v.g, v.lane, v.st, int(v.snd), int(v.rcv), int(v.txn), int(v.w), int(v.tp), v.lost}, '|')
      ns = ns + 2
    else
      nd = nd + 1; del[nd] = h
    end
  end
  if ns > 0 then hset(c.P .. 'cv', set, ns) end
  if nd > 0 then hdel(c.P .. 'cv', del, nd) end
  c.cvd = {}
end

-- flush_counters writes the counters that changed, and that something did.
local function flush_counters(c)
  local t, n = {'chg', int(tonumber(c.chg) + 1)}, 2
  local function add(name, now, was)
    if now ~= was then
      t[n + 1] = name; t[n + 2] = int(now)
      n = n + 2
    end
  end
  add('seq', c.seq, c.seq_was)
  add('ready', c.ready, c.ready_was)
  add('locked', c.locked, c.locked_was)
  add('bytes', c.bytes, c.bytes_was)
  add('nextdue', c.nextdue, c.due_was)
  add('tx', c.tx, c.tx_was)
  if c.tops_moved then
    t[n + 1] = 'tops'; t[n + 2] = c.tops or ''
    n = n + 2
  end
  if c.was then for name, was in pairs(c.was) do add(name, c[name], was) end end
  call('HSET', c.P .. 'meta', unpack(t, 1, n))
end

-- activations looks at the queues that were stirred; a script that cannot call for readers itself leaves it to due.
local function activations()
  local i = 1
  while stirred[i] do -- what is sent may stir others
    local c = stirred[i]
    local at = the_time
    if rare.activate then at = rare.activate(c) end
    if at then setdue(c, at) end
    i = i + 1
  end
  stirred = nil
end

-- flush writes everything the script changed in its contexts.
local function flush()
  if stirred then activations() end
  for _, c in pairs(ctxs) do
    if c then
      if next(c.lockd) then flush_locks(c); c.dirty = true end
      if next(c.cvd) then flush_conversations(c); c.dirty = true end
      if c.dirty then
        flush_counters(c)
        c.dirty = false
      end
    end
  end
end
