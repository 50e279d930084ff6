-- base: short names, the clock, contexts of entities, wake-ups.
-- A context is one entity (a queue or a sub-queue) as this script sees it: its meta hash and caches of what it touched.
-- All changes of meta, locks and endpoints are made in the context and written once, by flush.
local call, pcall_, sub, find, byte, fmt = redis.call, redis.pcall, string.sub, string.find, string.byte, string.format
local floor = math.floor
-- Defined in later parts of the library, used in earlier ones.
local conv_get, after_bury, drop_waiting, forget_retained, notify, park, activate

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

-- The first two bytes of META decide the order of v[] in open.
local META = {'status', 'epoch', 'seq', 'ready', 'locked', 'retrying', 'scheduled', 'bytes', 'tx', 'chg', 'asleep', 'maxdel',
  'poison', 'pscope', 'pcount', 'ri', 'rm', 'rx', 'rj', 'lanes', 'ttlf', 'ttl', 'dttl', 'hasstate', 'nextdue', 'kind', 'qn',
  'retention', 'lost', 'odl', 'name', 'retained', 'archive', 'age', 'notify', 'shared', 'parked', 'actq', 'act'}
local ctxs = {}

local function open(P)
  local c = ctxs[P]
  if c ~= nil then return c end
  local v = call('HMGET', P .. 'meta', unpack(META))
  if not v[1] then
    ctxs[P] = false
    return false
  end
  c = {P = P, status = v[1], epoch = v[2], seq = tonumber(v[3] or 0), ready = tonumber(v[4] or 0), locked = tonumber(v[5] or 0),
    retrying = tonumber(v[6] or 0), scheduled = tonumber(v[7] or 0), bytes = tonumber(v[8] or 0), tx = tonumber(v[9] or 0),
    chg = tonumber(v[10] or 0), asleep = v[11], maxdel = tonumber(v[12] or 0), poison = tonumber(v[13] or 0), pscope = v[14],
    pcount = tonumber(v[15] or 0), ri = tonumber(v[16] or 0), rm = tonumber(v[17] or 0), rx = tonumber(v[18] or 2),
    rj = tonumber(v[19] or 0), lanes = v[20] or '5', ttlf = v[21], ttl = tonumber(v[22] or 0), dttl = v[23] == '1',
    hasstate = v[24], nextdue = tonumber(v[25] or 0), kind = v[26] or 'q', qn = v[27], retention = v[28] == '1',
    lost = tonumber(v[29] or 0), odl = v[30] or 'continue', name = v[31] or '', retained = tonumber(v[32] or 0),
    archive = v[33] == '1', age = tonumber(v[34] or 0), notify = v[35], shared = v[36], parked = v[37] and tonumber(v[37]), actq = v[38] ~= '' and v[38],
    act = v[39], lock = {}, lockd = {}, cv = {}, cvd = {}, eps = {}, dirty = false, extra = {}}
  ctxs[P] = c
  return c
end

local function can_receive(c) return c.status == 'active' or c.status == 'send_disabled' end
local function can_send(c) return c.status == 'active' or c.status == 'receive_disabled' end

-- lanes_of names all lanes of c: back is there once a dead letter has parked a group.
local function lanes_of(c) return (c.parked and 'sys,back,' or 'sys,') .. c.lanes end

local function namespace(P) return string.match(P, '^{([^/]*)/') end

local function publish(c, text) call('PUBLISH', 'parley:' .. namespace(c.P) .. ':wake', text) end

-- stir has flush see whether a reader must be called from outside (external activation).
local stirred
local function stir(c)
  stirred = stirred or {}
  stirred[#stirred + 1] = c
end

-- wake tells sleeping readers that something became deliverable (H12). Costs nothing on a busy queue.
local function wake(c)
  if c.asleep then
    call('HDEL', c.P .. 'meta', 'asleep')
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
      set[ns + 2] = table.concat({v.g, v.lane, v.st, int(v.snd), int(v.rcv), int(v.txn), int(v.w), int(v.tp)}, '|')
      ns = ns + 2
    else
      nd = nd + 1; del[nd] = h
    end
  end
  if ns > 0 then hset(c.P .. 'cv', set, ns) end
  if nd > 0 then hdel(c.P .. 'cv', del, nd) end
  c.cvd = {}
end

-- activations looks at the queues that were stirred; a script that cannot call for readers itself leaves it to due.
local function activations()
  local i = 1
  while stirred[i] do -- what is sent may stir others
    local c = stirred[i]
    local at = the_time
    if activate then at = activate(c) end
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
        call('HSET', c.P .. 'meta', 'seq', int(c.seq), 'ready', int(c.ready), 'locked', int(c.locked), 'retrying', int(c.retrying),
          'scheduled', int(c.scheduled), 'bytes', int(c.bytes), 'tx', int(c.tx), 'nextdue', int(c.nextdue), 'chg', int(c.chg + 1))
        if c.retained_dirty then call('HSET', c.P .. 'meta', 'retained', int(c.retained)) end
        c.dirty = false
      end
    end
  end
end
