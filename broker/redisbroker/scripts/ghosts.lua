-- ghosts: what names a reader that is none gives back, uncounted, what it holds: pending entries, a record, slots and locks. A server that
-- lost its last writes may leave such, and a host of another version. Each finding is an event.
-- lib: none
-- KEYS 1: meta of the queue; its sub-queues are looked at too.
-- ARGV 1: now in ms, '' for the server's  2: how many locks are looked at in one call; the next call goes on behind them
-- RETURNS NOENT, NOGROUP when a lane of the queue has lost its group, else OK; then the number of readers and of locks found.
-- What every call does is written out, without the functions of scripts/lib: mostly there is nothing, on thousands of queues.
local call, pcall_ = redis.call, redis.pcall
local P = string.sub(KEYS[1], 1, -5)

-- holders returns the consumer names of a lane with pending entries, nil when it has lost its group.
local function holders(key, into)
  local r = pcall_('XPENDING', key, 'w')
  if type(r) ~= 'table' or r.err then return nil end
  if r[1] == 0 then return into end
  for _, e in ipairs(r[4]) do into[e[1]] = true end
  return into
end

local found_readers, found_locks = 0, 0

-- heal gives back what ghosts hold: all that readers names, and the locks of groups, each with its holder.
local function heal(prefix, readers, groups)
  -- parts here: names base entry lock readers stored foreign waits notify giveback
  local now, c, queue = clock(ARGV[1]), open(prefix), open(P)
  call('HDEL', prefix .. 'meta', '_')
  for _, name in ipairs(readers) do
    local list, n = units(c, name), #pending(c, name)
    orphans(c, now, name, {}, list)
    unlock(c, name, list)
    forget_reader(c, name)
    event(queue, now, 'ghost_reader', 'path', c.name, 'reader', name, 'messages', int(n))
    found_readers = found_readers + 1
  end
  for _, l in ipairs(groups) do
    local g, holder = l[1], l[2]
    if lock_parse(lock_get(c, g)) == holder then
      local n = 0
      for _, s in ipairs({'t', 'e', 's'}) do n = n + call('LLEN', prefix .. 'b:' .. g .. ':' .. s) end
      free(c, g, n)
      event(queue, now, 'ghost_lock', 'path', c.name, 'reader', holder, 'group', g, 'messages', int(n))
      found_locks = found_locks + 1
    end
  end
  wake(c)
  flush()
end

-- look finds the ghosts of the queue or sub-queue at prefix.
local function look(prefix, lanes, cursor)
  local names, registered = {backlog = true, retry = true, deferred = true}, {backlog = true, retry = true, deferred = true}
  for lane in string.gmatch(lanes, '[^,]+') do
    if not holders(prefix .. 's:' .. lane, names) then return false end
  end
  local readers, groups = {}, {}
  local function is_reader(name)
    if registered[name] == nil then registered[name] = call('ZSCORE', prefix .. 'rd', name) and true or false end
    return registered[name]
  end
  for _, key in ipairs({'win', 'sl', 'lr'}) do
    for _, name in ipairs(call('HKEYS', prefix .. key)) do names[name] = true end
  end
  for name in pairs(names) do if not is_reader(name) then readers[#readers + 1] = name end end
  table.sort(readers)
  local r = call('HSCAN', prefix .. 'lock', cursor, 'COUNT', ARGV[2])
  for i = 1, #r[2], 2 do
    local holder = string.match(r[2][i + 1], '^[^-~!+][^+]*')
    if holder and not is_reader(holder) then groups[#groups + 1] = {r[2][i], holder} end
  end
  if #readers + #groups > 0 then heal(prefix, readers, groups) end
  if r[1] ~= cursor then
    call('HDEL', prefix .. 'meta', '_') -- the first write is one that Redis allows when it is full (M3)
    call('HSET', prefix .. 'meta', 'ghosts', r[1])
  end
  return true
end

local meta = call('HMGET', KEYS[1], 'lanes', 'parked', 'ghosts')
if not meta[1] then return {'NOENT', '0', '0'} end
local whole = look(P, (meta[2] and 'sys,back,' or 'sys,') .. meta[1], meta[3] or '0')
for _, k in ipairs({'d:', 't:'}) do
  local pending_ones = pcall_('XPENDING', P .. k .. 's:5', 'w')[1]
  if pending_ones and pending_ones > 0 or call('EXISTS', P .. k .. 'win', P .. k .. 'lock', P .. k .. 'sl') > 0 then
    look(P .. k, 'sys,5', call('HGET', P .. k .. 'meta', 'ghosts') or '0')
  end
end
return {whole and 'OK' or 'NOGROUP', string.format('%d', found_readers), string.format('%d', found_locks)}
