-- attempt: counting failed attempts and what follows. The decisions (verdict, pause) are pure; broker/rules.go states the same
-- rules in Go and a test compares the two.
function att_parse(v, epoch)
  if not v then return 0, 0, 0 end
  local d, p, e, u = string.match(v, '^(%d+),(%d+),(%d+),(%d+)$')
  if e ~= epoch then p = 0 end
  return tonumber(d), tonumber(p), tonumber(u)
end

-- verdict says what a failed attempt leads to for one message: expire, bury, trip or again. d and p include this failure.
-- Order: expiry, then the delivery limit (it frees the queue, so it wins a tie), then poison. A unit of several messages carries
-- none to a limit: nobody knows which of them failed. Each is handed out alone next time (unit_size), and then it shows.
function verdict(d, p, is_expired, several, maxdel, poison)
  if is_expired then return 'expire' end
  if several then return 'again' end
  if maxdel > 0 and d >= maxdel then return 'bury' end
  if poison > 0 and p >= poison then return 'trip' end
  return 'again'
end

-- pause returns how many ms a group or plain message rests after its d-th failure: initial × multiplier^(d−1), at most max (or, when
-- there is none, what a timer may have at most), less a share of jitter given by the caller's random number 0…1.
function pause(d, initial, max, mult, jitter, rnd)
  if initial <= 0 then return 0 end
  if max <= 0 then max = 2147483647000 end
  local ms = initial
  for _ = 2, d do
    ms = ms * mult
    if ms >= max then break end
  end
  if ms > max then ms = max end
  return floor(ms * (1 - jitter * rnd))
end

-- forget_counts drops counts and last errors of messages that are gone (H10).
function forget_counts(c, refs)
  local t = {}
  for i, r in ipairs(refs) do
    t[2 * i - 1] = r; t[2 * i] = 'e' .. r
  end
  hdel(c.P .. 'att', t, #t)
end

local function plural(n) return 'the message could not be consumed after ' .. int(n) .. ' delivery attempts' end

-- expire drops or dead-letters one message whose time to live is over; the caller has consumed it.
function expire(c, now, ref, h, b, d, p, last, g)
  if c.dttl then
    bury(c, now, ref, h, b, 'TTLExpiredException', 'the message expired and was dead-lettered', d, p, last, g)
  end
end

local function turn_off(c, now, m, p, why)
  c.status = 'off'
  call('HSET', c.P .. 'meta', 'status', 'off')
  local f = fields(m.h)
  local session = sub(m.owner, 1, 2) == 's:' and sub(m.owner, 3) or ''
  local handle = session == '' and m.owner or ''
  local group = sub(m.g, 1, 2) == 'g:' and sub(m.g, 3) or ''
  event(c, now, 'queue_disabled', 'reason', 'poison', 'rollbacks', int(p), 'sequence_number', int(seq_of(m.ref)),
    'message_id', f[7] or '', 'conversation_handle', handle, 'conversation_group_id', group, 'session_id', session, 'message_type', f[8] or '',
    'last_error', why, 'properties', f[9] or '')
  publish(c, 'w ' .. c.P)
  if c.notify then
    notify(c, now, 'queue_disabled', cjson.encode({type = 'queue_disabled', queue = plain_text(c.name), reason = 'poison', rollbacks = p, sequence_number = seq_of(m.ref),
      message_id = plain_text(f[7] or ''), conversation_handle = handle, conversation_group_id = group, session_id = plain_text(session), message_type = plain_text(f[8] or ''),
      last_error = plain_text(why), epoch = tonumber(c.epoch), time = now}), c.notify, c.direct)
  end
end

-- gone notes that a sequenced message of a conversation left for good, for END's count of what waits.
function gone(c, h, cseq, ref)
  local conv = conv_get(c, h)
  if not conv then return end
  if list_of(ref) ~= 's' then
    conv.w = conv.w - 1
    c.cvd[h] = true
  elseif cseq ~= '' then
    local done = tonumber(call('HGET', c.P .. 'dc', h) or 0)
    if tonumber(cseq) >= done then
      if c.passing and c.passing[''] and rare.ahead(c, h, tonumber(cseq), done) then return end
      call('HSET', c.P .. 'dc', h, int(tonumber(cseq) + 1))
    else
      conv.w = conv.w - 1
      c.cvd[h] = true
    end
  end
end

-- fail counts a failed attempt of one unit and does what follows: bury, expire, park, put back, turn the queue OFF. counted
-- false: the attempt is only uncertain (protocol, window mode). died: it ended with its host, alone in its slot, so earlier uncertain
-- deaths become certain. ask: pause the handler asked for in ms, or −1.
-- Returns 'again', 'bury' (nothing is left of the unit) or 'trip'.
function fail(c, now, g, refs, why, ask, rnd, counted, died)
  local keep, trip, turned, worst, gonerefs, dead = {}, nil, false, 1, {}, {}
  local atts, several = call('HMGET', c.P .. 'att', unpack(refs)), #refs > 1
  local sets = {}
  if counted and c.pscope == 'q' and c.poison > 0 then
    c.pcount = c.pcount + 1
    call('HSET', c.P .. 'meta', 'pcount', int(c.pcount))
  end
  for i, ref in ipairs(refs) do
    local d, p, u = att_parse(atts[i], c.epoch)
    local v = 'again'
    local h, b, f
    if counted then
      d = d + 1; p = p + 1
      if died then d = d + u; p = p + u; u = 0 end
      if c.pscope == 'q' then p = c.pcount end
      local look = c.ttlf or not several and ((c.maxdel > 0 and d >= c.maxdel) or (c.poison > 0 and p >= c.poison))
      if look then h, b, f = read(c, ref) end
      v = verdict(d, p, h and c.ttlf and expired(h, now), several, c.maxdel, c.poison)
    else
      u = u + 1
    end
    if d > worst then worst = d end
    if v == 'bury' or v == 'expire' then
      gonerefs[#gonerefs + 1] = ref
      if h then dead[#dead + 1] = {v = v, ref = ref, h = h, b = b, d = d, p = p} end
    else
      keep[#keep + 1] = ref
      sets[#sets + 1] = ref
      sets[#sets + 1] = table.concat({int(d), int(p), c.epoch, int(u)}, ',')
      if v == 'trip' and not trip then trip = {ref = ref, h = h or '', p = p} end
      if why ~= '' then sets[#sets + 1] = 'e' .. ref; sets[#sets + 1] = why end
    end
  end
  c.locked = c.locked - #refs
  c.dirty = true
  if #gonerefs > 0 then
    consume(c, gonerefs, 1, #gonerefs)
    forget_counts(c, gonerefs)
    for _, m in ipairs(dead) do
      local f = fields(m.h)
      c.bytes = c.bytes - #m.b
      if m.v == 'bury' then
        bury(c, now, m.ref, m.h, m.b, 'MaxDeliveryCountExceeded', plural(c.maxdel), m.d, m.p, why, g)
      else
        expire(c, now, m.ref, m.h, m.b, m.d, m.p, why, g)
      end
      if f[1] ~= '' and sub(f[1], 1, 2) ~= 's:' then
        gone(c, f[1], f[3], m.ref)
        if m.v == 'bury' then after_bury(c, now, f[1]) end
      end
      if m.v == 'bury' and c.odl == 'park' and g ~= '' then park().hold(c, now, g, f[1], m.ref) end
    end
  end
  if #sets > 0 then hset(c.P .. 'att', sets, #sets) end
  local survive = #keep
  if g ~= '' then keep = collapse(c, keep) end
  if trip then
    local f = fields(trip.h)
    trip.owner = f[1] or ''
    trip.g = g
    turned = can_receive(c)
    if turned then turn_off(c, now, trip, trip.p, why) end
  end
  local rest = 0
  if counted and not trip and #keep > 0 then
    rest = ask >= 0 and ask or pause(worst, c.ri, c.rm, c.rx, c.rj, rnd)
  end
  if c.passing then rest = rare.pause_of(c, g, rest) end
  if g == '' then
    if #keep > 0 then
      if rest > 0 then
        rename(c, keep, 1, #keep, 'retry')
        for _, r in ipairs(keep) do call('ZADD', c.P .. 'retry', int(now + rest), r) end
        c.retrying = c.retrying + #keep
        setdue(c, now + rest)
      else
        back_plain(c, keep)
        c.ready = c.ready + #keep
      end
    end
  else
    local n
    if #keep > 0 then
      n = back_group(c, g, keep, rest > 0 and 'retry' or 'backlog')
    else
      local _, _, w = lock_parse(lock_get(c, g))
      n = w
    end
    if rest > 0 and n > 0 then
      lock_set(c, g, '~' .. int(n))
      call('ZADD', c.P .. 'retry', int(now + rest), g)
      c.retrying = c.retrying + #keep
      setdue(c, now + rest)
    else
      c.ready = c.ready + #keep
      free(c, g, n)
    end
  end
  if turned then return 'trip' end
  if survive == 0 then return 'bury' end
  return 'again'
end
