-- chunk: a look at some entries of one stream and at who holds them. Bodies stay where they are: only their lengths are told.
-- lib: names
-- KEYS 1: meta of the queue or sub-queue.
-- ARGV 1: the stream's name behind the prefix  2: first id  3: number of entries at most  4: bytes of bodies after which it stops
-- RETURNS a list: the change counter of meta, where the next call begins ('' at the end of the stream), the last id that the group gave
--   out ('' without a group), the number of entries, seven values of each (id, number of fields, name of the first, length of its
--   value, and of a transmission entry from, k, seq and rest in one: joined by blanks, '' of others; see below), then id and consumer
--   name of each pending entry in that range.
local P = sub(KEYS[1], 1, -5)
local key, from, most, budget = P .. ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local transit = sub(ARGV[1], 1, 3) == 'tx:'
local out, n, bytes, last, done = {call('HGET', KEYS[1], 'chg') or '', '', '', '0'}, 0, 0, nil, false

-- after is the smallest id behind id.
local function after(id)
  local ms, seq = string.match(id, '^(%d+)-(%d+)$')
  return ms .. '-' .. fmt('%d', tonumber(seq) + 1)
end

local function add(e)
  local f = e[2]
  local at = #out
  out[at + 1], out[at + 2], out[at + 3], out[at + 4] = e[1], fmt('%d', #f / 2), f[1] or '', fmt('%d', #(f[2] or ''))
  local v = {}
  if transit then
    for i = 1, #f, 2 do v[f[i]] = f[i + 1] end
  end
  out[at + 5], out[at + 6], out[at + 7] = v.from or '', (v.k or '') .. ' ' .. (v.seq or ''), v.rest or ''
  for i = 2, #f, 2 do bytes = bytes + #f[i] end
end

-- A few at a time, more when they are small: what a script reads is copied.
local step, start = 4, from
while n < most and bytes < budget and not done do
  local want = math.min(step, most - n)
  local list = call('XRANGE', key, start, '+', 'COUNT', fmt('%d', want))
  for _, e in ipairs(list) do add(e) end
  n = n + #list
  done = #list < want
  if #list > 0 then
    last = list[#list][1]
    start = after(last)
  end
  if bytes / math.max(n, 1) * step < budget / 16 then step = math.min(step * 2, 128) end
end
out[4] = fmt('%d', n)
if not done then out[2] = start end

local groups = redis.pcall('XINFO', 'GROUPS', key)
if type(groups) == 'table' and not groups.err and groups[1] then
  for i = 1, #groups[1], 2 do
    if groups[1][i] == 'last-delivered-id' then out[3] = string.match(groups[1][i + 1], '^%d+%-%d+$') or '0-0' end
  end
  local to, low = done and '+' or last, from
  repeat
    local p = call('XPENDING', key, 'w', low, to, '1000')
    for _, e in ipairs(p) do
      out[#out + 1] = e[1]
      out[#out + 1] = e[2]
    end
    if #p == 1000 then low = after(p[1000][1]) end
  until #p < 1000
end
return out
