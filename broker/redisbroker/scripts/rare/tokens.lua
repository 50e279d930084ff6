-- tokens: lock tokens. A token is a reader of its own, p:<UUID>, that holds one message until its end in rd; the one line of its record in win
-- has the bytes of the body where a host's has a slot. Tokens that one receive gave of one group share the group's lock: tk:<group> keeps
-- those that are open in the order they were given, the lock names the first of them, and the group is let go with the last. What a failure asked for
-- meanwhile, a pause, waits in tkr: group → until when. c.passing says, while a script settles, whom a lock goes to: group → token, or ~ and the end
-- of the pause that begins now; '' is there while a shared token settles.

-- held_by returns the message of each token: its ref, group and bytes of body, nil when the token is not known (any more) or has ended.
function held_by(c, now, tokens)
  local ends, records = call('ZMSCORE', c.P .. 'rd', unpack(tokens)), call('HMGET', c.P .. 'win', unpack(tokens))
  local list, seen = {}, {}
  for i, token in ipairs(tokens) do
    if ends[i] and tonumber(ends[i]) >= now and records[i] and not seen[token] then
      local bytes, ref, g = string.match(records[i], '^(%d+) (%S+) (.*)\n$')
      list[i] = {token = token, bytes = tonumber(bytes), ref = ref, g = g}
    end
    seen[token] = true
  end
  return list
end

-- leave_lock takes a token off those that share the lock of g, before what it held is settled: the release of g, in this script, passes the lock on.
function leave_lock(c, g, token)
  c.passing = c.passing or {}
  c.passing[''] = nil
  if g == '' or call('ZREM', c.P .. 'tk:' .. g, token) == 0 then return false end
  c.passing[''] = true
  c.passing[g] = call('ZRANGE', c.P .. 'tk:' .. g, '0', '0')[1] or nil
  if c.parked and call('HEXISTS', c.P .. 'pk', g) == 1 then
    c.parking = c.parking or {}
    c.parking[g] = true
  end
  if not c.passing[g] then
    local till = call('HGET', c.P .. 'tkr', g)
    if till then
      call('HDEL', c.P .. 'tkr', g)
      if tonumber(till) > the_time and not (c.parking and c.parking[g]) then c.passing[g] = '~' .. till end
    end
  end
  return true
end

-- pass_lock is the release of a group whose lock c.passing disposes of, with n entries waiting in its lists.
function pass_lock(c, g, n)
  local to = c.passing[g]
  if byte(to, 1) ~= 126 then
    lock_set(c, g, held_value(to, n))
    return
  end
  c.passing[g] = nil
  if n <= 0 then return free(c, g, n) end
  lock_set(c, g, '~' .. int(n))
  call('ZADD', c.P .. 'retry', sub(to, 2), g)
  setdue(c, tonumber(sub(to, 2)))
end

-- pause_of is how many ms g rests now after a failure that asked for rest ms: none while other tokens share its lock, since the
-- pause begins with the last of them.
function pause_of(c, g, rest)
  local to = c.passing[g]
  if c.parking and c.parking[g] then return 0 end
  if not to then return rest end
  if byte(to, 1) == 126 then
    c.passing[g] = nil
    return math.max(rest, tonumber(sub(to, 2)) - the_time)
  end
  if rest > 0 then
    local till = tonumber(call('HGET', c.P .. 'tkr', g) or 0)
    if the_time + rest > till then call('HSET', c.P .. 'tkr', g, int(the_time + rest)) end
  end
  return 0
end

-- in_order puts ref back into a list of its group, where others that were handed out together with it may stand already.
local put_last = {}
function in_order(key, ref)
  local i, mine, last = 0, place_of(ref), put_last[key]
  if last and place_of(last.ref) < mine and call('LINDEX', key, last.i) == last.ref then i = last.i + 1 end
  local next_one = call('LINDEX', key, i)
  while next_one and place_of(next_one) < mine do
    i = i + 1
    next_one = call('LINDEX', key, i)
  end
  if not next_one then
    call('RPUSH', key, ref)
  elseif i == 0 then
    call('LPUSH', key, ref)
  else
    call('LINSERT', key, 'BEFORE', next_one, ref)
  end
  put_last[key] = {i = i, ref = ref}
end

-- ahead notes in dc, behind a +, that a message of a conversation's sequence is gone while an earlier one of those that were received
-- together is not; false when none is.
function ahead(c, h, cseq, done)
  local known, left = {}, {}
  for n in string.gmatch(call('HGET', c.P .. 'dc', '+' .. h) or '', '%d+') do
    known[tonumber(n)] = true
    if tonumber(n) > cseq then left[#left + 1] = n end
  end
  local open_one = done
  while known[open_one] do open_one = open_one + 1 end
  local early = open_one < cseq
  if early then
    for n in pairs(known) do if n >= done and n < cseq then left[#left + 1] = int(n) end end
    left[#left + 1] = int(cseq)
    table.sort(left)
  end
  if #left > 0 then
    call('HSET', c.P .. 'dc', '+' .. h, table.concat(left, ','))
  elseif next(known) then
    call('HDEL', c.P .. 'dc', '+' .. h)
  end
  return early
end

-- forget_token forgets a token that holds nothing any more; ref is what it held.
function forget_token(c, token, ref)
  call('ZREM', c.P .. 'rd', token)
  call('HDEL', c.P .. 'win', token)
  call('XGROUP', 'DELCONSUMER', lane_of(c, ref), 'w', token)
  c.dirty = true
end

-- forget_ended drops what open tokens hold of conversations of g that ended with a dead letter (on_dead_letter: end). leave counted it as waiting.
function forget_ended(c, g)
  for _, token in ipairs(call('ZRANGE', c.P .. 'tk:' .. g, '0', '-1')) do
    local ref = string.match(call('HGET', c.P .. 'win', token) or '', '^%d+ (%S+) ')
    local head, body = read(c, ref)
    if head and byte(head, 2) ~= 58 and not conv_get(c, owner_of(head)) then
      leave_lock(c, g, token)
      consume(c, {ref}, 1, 1)
      call('HDEL', c.P .. 'att', ref, 'e' .. ref)
      c.bytes = c.bytes - #body
      c.locked = c.locked - 1
      c.ready = c.ready + 1
      local _, _, w = lock_parse(lock_get(c, g))
      free(c, g, w)
      forget_token(c, token, ref)
    end
  end
end
