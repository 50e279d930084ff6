-- configure: create a queue with its sub-queues, or alter it. Streams get their group from 0, so nothing is missed (M2).
-- lib: names base history
-- KEYS 1: meta of the queue.
-- ARGV 1: now in ms, '' for the server's  2: queue number, 8 hex digits  3: number of settings, then name and value of each
--   then number of services, and their names; number of priority rules, and key and level of each.
-- RETURNS created or altered.
local now = clock(ARGV[1])
local P = sub(KEYS[1], 1, -5)
local new = call('EXISTS', P .. 'meta') == 0
local this = server()
-- counted is where the count of a queue goes on whose meta was lost and whose streams were not: else what they hold would be taken for
-- what others wrote.
local function counted(S)
  local n = 0
  for _, lane in ipairs({'5', 'sys', 'back', '1', '2', '3', '4', '6', '7', '8', '9', '10'}) do
    local info = pcall_('XINFO', 'STREAM', S .. 's:' .. lane)
    for i = 1, info.err and 0 or #info, 2 do
      local last = info[i] == 'last-generated-id' and tonumber(string.match(tostring(info[i + 1]), '^%d+'))
      if last and last < 2 ^ 52 then n = math.max(n, last) end
    end
  end
  return int(n)
end
-- fresh is a new meta.
local function fresh(key, kind, ...)
  call('HSET', key, 'status', 'active', 'seq', counted(sub(key, 1, -5)), 'ready', '0', 'locked', '0', 'bytes', '0', 'nextdue', '0', 'chg', '0', 'asleep', '0',
    'ttlf', '0', 'hasstate', '0', 'shared', '0', 'lanes', '5', 'kind', kind, 'pcount', '0', 'ttl', '0', 'age', '0', 'retention', '0',
    'actq', '', 'epoch', '0', 'qn', ARGV[2], 'run', this, ...)
end
-- A queue's meta is a real hash, since it has a long value: a small one is searched from its start for every field.
if new then
  fresh(P .. 'meta', 'q', 'plain', '1')
else
  call('HDEL', P .. 'meta', '_') -- a host can start on a full Redis, and so drain it; a new queue is refused there
end
call('HSET', P .. 'meta', 'note', 'kept by the scripts of Parley, several fields at a time: look, and change nothing by hand')
local calls_before = call('HGET', P .. 'meta', 'actq')
local n = tonumber(ARGV[3])
local at = 4
local set = {}
for i = 1, 2 * n do set[i] = ARGV[at]; at = at + 1 end
call('HSET', P .. 'meta', 'qn', ARGV[2], unpack(set))
local ns = tonumber(ARGV[at]); at = at + 1
call('DEL', P .. 'svc')
for _ = 1, ns do call('HSET', P .. 'svc', ARGV[at], '1'); at = at + 1 end
local np = tonumber(ARGV[at]); at = at + 1
call('DEL', P .. 'pr')
for _ = 1, np do call('HSET', P .. 'pr', ARGV[at], ARGV[at + 1]); at = at + 2 end
local function group(key) pcall_('XGROUP', 'CREATE', key, 'w', '0', 'MKSTREAM') end
local lanes = call('HGET', P .. 'meta', 'lanes') or '5'
for lane in string.gmatch('sys,' .. lanes, '[^,]+') do group(P .. 's:' .. lane) end
local name = call('HGET', P .. 'meta', 'name')
for _, k in ipairs({'d', 't'}) do
  local S = P .. k .. ':'
  if call('EXISTS', S .. 'meta') == 0 then
    fresh(S .. 'meta', k, 'maxdel', '0', 'poison', '0', 'name', name .. (k == 'd' and '/$DeadLetterQueue' or '/$Transfer/$DeadLetterQueue'))
  end
  group(S .. 's:5')
  group(S .. 's:sys')
end
local c = open(P)
if c.actq then not_plain(c) end
if c.actq and c.actq ~= calls_before then -- what waits already may need a reader: due finds out
  call('HDEL', P .. 'meta', 'act')
  setdue(c, now)
  flush()
end
return new and 'created' or 'altered'
