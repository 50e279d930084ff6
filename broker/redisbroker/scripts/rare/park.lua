-- park: groups that dead letters hold up (on_dead_letter: park). pk: group → number:place:owner of each dead letter that holds it up,
-- joined by blanks. A group is in pk exactly while its lock is !N: nothing of it is handed out. What an operator puts back goes to the
-- lane back, filed as it comes, and stands in its group's list where it stood before. meta.parked counts the groups of pk.
-- All of it is made when it is first asked for: most scripts never do.
function park()
  local p = {}
  function park() return p end

  -- hold lets the dead letter that ref has become hold up g; the release of g, in this script, sees to its lock.
  function p.hold(c, now, g, owner, ref)
    if not c.parked then
      c.parked = 0
      pcall_('XGROUP', 'CREATE', c.P .. 's:back', 'w', '0', 'MKSTREAM')
    end
    c.parking = c.parking or {}
    c.parking[g] = true
    local seq = int(seq_of(ref))
    local s = call('HGET', c.P .. 'pk', g)
    if not s then
      c.parked = c.parked + 1
      call('HSET', c.P .. 'meta', 'parked', int(c.parked))
    end
    call('HSET', c.P .. 'pk', g, (s and s .. ' ' or '') .. seq .. ':' .. int(place_of(ref)) .. ':' .. owner)
    local session = sub(owner, 1, 2) == 's:' and sub(owner, 3) or ''
    event(c, now, 'conversation_parked', 'sequence_number', seq, 'conversation_handle', session == '' and owner or '',
      'conversation_group_id', sub(g, 1, 2) == 'g:' and sub(g, 3) or '', 'session_id', session)
  end

  -- each calls f(record, number, place, owner) for what holds up g.
  local function each_parking(c, g, f)
    for one in string.gmatch(call('HGET', c.P .. 'pk', g) or '', '%S+') do
      f(one, string.match(one, '^(%d+):(%d+):(.*)$'))
    end
  end

  -- find returns the place of a dead letter that holds up g: that number, or any of that owner.
  function p.find(c, g, number, owner)
    local place
    each_parking(c, g, function(_, n, at, o) if n == number or o == owner then place = at end end)
    return place
  end

  -- drop lets go what the dead letter with that number, or all of that owner, hold up. When nothing else does, g goes on.
  function p.drop(c, g, number, owner)
    local left, hit = {}, false
    each_parking(c, g, function(one, n, _, o)
      if n == number or o == owner then hit = true else left[#left + 1] = one end
    end)
    if not hit then return end
    c.dirty = true
    if #left > 0 then
      call('HSET', c.P .. 'pk', g, table.concat(left, ' '))
      return
    end
    call('HDEL', c.P .. 'pk', g)
    c.parked = c.parked - 1
    call('HSET', c.P .. 'meta', 'parked', int(c.parked))
    local _, mark, w = lock_parse(lock_get(c, g))
    if mark == '!' then free(c, g, w) end
  end

  -- settled lets go what dead letters of d hold up that are about to leave it: resubmitted, purged, or received and settled.
  function p.settled(d, ids, i, j)
    local c = open(sub(d.P, 1, -3))
    if not c or not c.parked then return end
    for k = i, j do
      local h = c.parked > 0 and read(d, ids[k])
      local f = h and fields(h)
      if f and f[19] and f[19] ~= '' then p.drop(c, f[19], f[12], nil) end
    end
  end

  -- forget_lost lets go what is held up by dead letters that are not there: somebody deleted their entries by hand. It looks at some
  -- hundreds of groups.
  function p.forget_lost(d)
    local c = open(sub(d.P, 1, -3))
    if not c or not c.parked or c.parked == 0 then return end
    local page = call('HSCAN', c.P .. 'pk', '0', 'COUNT', '500')[2]
    for i = 1, #page, 2 do
      local lost = {}
      each_parking(c, page[i], function(_, n)
        if call('ZCOUNT', d.P .. 'ix', n, n) == 0 then lost[#lost + 1] = n end
      end)
      for _, n in ipairs(lost) do p.drop(c, page[i], n, nil) end
    end
  end

  -- in_place puts ref into the list of g's sequence: behind those of its conversation that were before it, in front of all others.
  function p.in_place(c, g, owner, ref)
    local key, before = c.P .. 'b:' .. g .. ':s', nil
    for _, r in ipairs(call('LRANGE', key, 0, 999)) do
      local h = read(c, r)
      if h and sub(h, 1, #owner + 1) == owner .. '|' then
        if place_of(r) > place_of(ref) then break end
        before = r
      end
    end
    if before then call('LINSERT', key, 'AFTER', before, ref) else call('LPUSH', key, ref) end
  end

  -- put_back stores a message in its old place. head: cseq|expires|enqueued|kind|rest of the header. Returns its new number.
  function p.put_back(c, g, owner, place, head, body)
    local cseq, rest = string.match(head, '^([^|]*)|(.*)$')
    local id = put(c, 'back', owner .. '|' .. int(#body) .. '|' .. cseq .. '|' .. rest, body, place)
    file_own(c, 'back', id .. '-' .. place)
    p.in_place(c, g, owner, id .. '-' .. place .. '/b')
    c.ready = c.ready + 1
    added(c, g, 1)
    raise(c, g)
    return id
  end
  return p
end
