-- stored: entries by their references: reading, renaming and consuming any of them. See lib/entry.lua for their form.
function lane_of(c, ref)
  local p = find(ref, '/', 1, true)
  if not p then return c.P .. 's:5', ref end
  local l = sub(ref, p + 1)
  if l == 't' or l == 'e' then l = 'sys' elseif l == 'b' then l = 'back' end
  return c.P .. 's:' .. l, sub(ref, 1, p - 1)
end

function list_of(ref)
  local p = find(ref, '/', 1, true)
  if not p then return 's' end
  local l = sub(ref, p + 1)
  if l == 't' or l == 'e' then return l end
  return 's'
end

function seq_of(ref)
  local p = find(ref, '/', 1, true)
  return tonumber(sub(ref, 1, find(ref, '-', 1, true) - 1))
end

-- place_of is what orders the messages of one conversation: their numbers, and of one that was put back the number it had first.
function place_of(ref)
  if byte(ref, -1) == 98 then return tonumber(string.match(ref, '-(%d+)/')) end
  return seq_of(ref)
end

-- bylane calls f(stream key, ids, n) once a lane for the refs of t[i..j], in chunks that unpack can take.
function bylane(c, t, i, j, f)
  local lanes, order = {}, {}
  for k = i, j do
    local key, id = lane_of(c, t[k])
    local l = lanes[key]
    if not l then
      l = {n = 0}; lanes[key] = l; order[#order + 1] = key
    end
    l.n = l.n + 1; l[l.n] = id
    if l.n == 4000 then f(key, l, l.n); lanes[key] = nil; order[#order] = nil end
  end
  for _, key in ipairs(order) do if lanes[key] then f(key, lanes[key], lanes[key].n) end end
end

-- consume removes refs t[i..j] for good. Counters are the caller's.
function consume(c, t, i, j)
  if i > j then return end
  bylane(c, t, i, j, function(key, ids, n)
    if c.kind == 'd' and rare.park then rare.park().settled(c, ids, 1, n) end
    call('XACK', key, 'w', unpack(ids, 1, n))
    call('XDEL', key, unpack(ids, 1, n))
    if c.kind ~= 'q' then call('ZREM', c.P .. 'ix', unpack(ids, 1, n)) end
  end)
  c.dirty = true
end

-- rename gives entries to another consumer name without counting a delivery (M4).
function rename(c, t, i, j, name)
  bylane(c, t, i, j, function(key, ids, n)
    local a = {key, 'w', name, 0}
    for k = 1, n do a[k + 4] = ids[k] end
    a[n + 5] = 'JUSTID'
    call('XCLAIM', unpack(a, 1, n + 5))
  end)
end

-- read returns header and body of one entry, or nil when the entry is gone.
function read(c, ref)
  local key, id = lane_of(c, ref)
  local r = call('XRANGE', key, id, id)
  if not r[1] then return nil end
  local f = r[1][2]
  return f[1], f[2], f
end

-- owner_of is what stands first in a header; '' for an entry that is not ours.
function owner_of(h)
  local p = find(h, '|', 1, true)
  return p and sub(h, 1, p - 1) or ''
end

-- ours says whether a stored entry, given by its reference and fields, has the form in which we write plain messages.
function ours(ref, f)
  local h, b = f[1], f[2]
  return b and not f[3] and find(ref, '-0', 1, true) ~= nil and find(h, '|' .. int(#b) .. '|', 1, true) == 1
end

-- fields splits a header, or any record, at '|'.
function fields(h)
  local t, n, i = {}, 0, 1
  while true do
    local p = find(h, '|', i, true)
    n = n + 1
    if not p then
      t[n] = sub(h, i)
      return t, n
    end
    t[n] = sub(h, i, p - 1)
    i = p + 1
  end
end

function expired(h, now)
  local p = find(h, '|', 1, true)
  p = find(h, '|', p + 1, true)
  p = find(h, '|', p + 1, true)
  local q = find(h, '|', p + 1, true)
  if q == p + 1 then return false end
  return tonumber(sub(h, p + 1, q - 1)) <= now
end

function blen(h)
  local p = find(h, '|', 1, true)
  local q = find(h, '|', p + 1, true)
  return tonumber(sub(h, p + 1, q - 1)) or 0
end
