-- dialog: conversation endpoints. cv: handle → group|lane|state|next send|next receive|in transmission|unsequenced waiting|
-- timer waiting|numbers that were lost on the way; it exists while this side has not ended. ep: handle → role|service|far service|far handle|contract|created|
-- expires|lane (never altered). ed: handle → DO or CD and when. dc: handle → how many sequenced messages are resolved.
-- gr: group → service|conversations. A handle is <queue number>-xxxx-Rxxx-…: R is 4 at the initiator, 8 at the target; the
-- rest is the conversation's, so each side computes the other's handle from its own.
local TARGET_LINGER = 30 * 60 * 1000

function ep_get(c, h)
  local e = c.eps[h]
  if e ~= nil then return e end
  local s = call('HGET', c.P .. 'ep', h)
  if s then
    local f = fields(s)
    e = {role = f[1], svc = f[2], far = f[3], farh = f[4], contract = f[5], created = f[6], expires = f[7], lane = f[8]}
  else
    e = false
  end
  c.eps[h] = e
  return e
end

function far_handle(t, h) return t.qn .. sub(h, 9, 14) .. '8' .. sub(h, 16) end

-- lane_for rates an endpoint once, at its creation (PR-2, PR-3): the rules stand in pr as contract|local|remote → level.
function lane_for(c, contract, loc, rem)
  if call('EXISTS', c.P .. 'pr') == 0 then return '5' end
  local keys = {}
  for _, m in ipairs({{1, 1, 1}, {1, 1, 0}, {1, 0, 1}, {1, 0, 0}, {0, 1, 1}, {0, 1, 0}, {0, 0, 1}, {0, 0, 0}}) do
    keys[#keys + 1] = (m[1] == 1 and contract or '') .. '|' .. (m[2] == 1 and loc or '') .. '|' .. (m[3] == 1 and rem or '')
  end
  local v = call('HMGET', c.P .. 'pr', unpack(keys))
  for i = 1, 8 do if v[i] then return v[i] end end
  return '5'
end

-- use_lane makes sure the lane's stream has its group and is read, best first.
local function use_lane(c, lane)
  for l in string.gmatch(c.lanes, '[^,]+') do if l == lane then return end end
  pcall_('XGROUP', 'CREATE', c.P .. 's:' .. lane, 'w', '0', 'MKSTREAM')
  local t = {}
  for l in string.gmatch(c.lanes, '[^,]+') do t[#t + 1] = l end
  t[#t + 1] = lane
  table.sort(t, function(a, b) return tonumber(a) > tonumber(b) end)
  c.lanes = table.concat(t, ',')
  call('HSET', c.P .. 'meta', 'lanes', c.lanes)
end

function group_join(c, g, svc)
  local s = call('HGET', c.P .. 'gr', g)
  local n = 0
  if s then
    local f = fields(s)
    n = tonumber(f[2])
    if not c.shared then -- only then a hand-out asks whether a group has several conversations
      c.shared = true
      call('HSET', c.P .. 'meta', 'shared', '1')
    end
  end
  call('HSET', c.P .. 'gr', g, svc .. '|' .. int(n + 1))
end

function group_leave(c, g)
  local s = call('HGET', c.P .. 'gr', g)
  if not s then return end
  local f = fields(s)
  local n = tonumber(f[2]) - 1
  if n > 0 then
    call('HSET', c.P .. 'gr', g, f[1] .. '|' .. int(n))
  else
    call('HDEL', c.P .. 'gr', g)
    call('DEL', c.P .. 'st:' .. g)
  end
end

function create_endpoint(c, now, h, role, svc, far, farh, contract, expires, group, state, lane)
  local e = {role = role, svc = svc, far = far, farh = farh, contract = contract, created = int(now), expires = expires, lane = lane}
  c.eps[h] = e
  call('HSET', c.P .. 'ep', h, table.concat({role, svc, far, farh, contract, e.created, expires, lane}, '|'))
  use_lane(c, lane)
  c.cv[h] = {g = group, lane = lane, st = state, snd = 0, rcv = 0, txn = 0, w = 0, tp = 0}
  c.cvd[h] = true
  group_join(c, group, svc)
  if expires ~= '' then
    call('ZADD', c.P .. 'lt', expires, h)
    setdue(c, tonumber(expires))
  end
  return c.cv[h]
end

-- append_system files a timer or an Error at arrival (H4): the system lane never has an unread entry.
function append_system(c, now, h, conv, k, rest, body, cseq)
  if k == 'T' and conv.tp > 0 then return end
  local id = put(c, 'sys', h .. '|' .. int(#body) .. '|' .. (cseq or '') .. '||' .. int(now) .. '|' .. k .. '|' .. rest, body)
  file_own(c, 'sys', id .. '-0')
  local l = k == 'T' and 't' or 'e'
  call('RPUSH', c.P .. 'b:' .. conv.g .. ':' .. l, id .. '-0/' .. l)
  conv.w = conv.w + 1
  if k == 'T' then conv.tp = 1 end
  if k == 'E' then conv.st = 'ER' end
  c.cvd[h] = true
  c.ready = c.ready + 1
  added(c, conv.g, 1)
end

local function xml_escape(s)
  return (s:gsub('[&<>"]', {['&'] = '&amp;', ['<'] = '&lt;', ['>'] = '&gt;', ['"'] = '&quot;'}))
end

function error_body(code, text)
  return '<?xml version="1.0"?><Error xmlns="http://schemas.microsoft.com/SQL/ServiceBroker"><Code>' .. code ..
    '</Code><Description>' .. xml_escape(text) .. '</Description></Error>'
end

-- broker_error puts an Error made by the broker on the local side of h (SM-4: negative code).
function broker_error(c, now, h, conv, code, text)
  if conv.st == 'ER' then return end
  append_system(c, now, h, conv, 'E', T_ERROR, error_body(code, text))
end

-- forget removes the last of an endpoint, or lets a closed target linger (ST-3).
function close_endpoint(c, now, h, ep)
  if ep and ep.role == 'T' then
    call('HSET', c.P .. 'ed', h, 'CD|' .. int(now))
    call('ZADD', c.P .. 'cl', int(now + TARGET_LINGER), h)
    setdue(c, now + TARGET_LINGER)
  else
    call('HDEL', c.P .. 'ed', h)
    call('HDEL', c.P .. 'ep', h)
  end
end

-- cleaned notes that h was ended here WITH CLEANUP, for as long as the far side may send: that is dropped, and it hears nothing (EC-6).
function cleaned(c, now, h, ep)
  local till = ep and ep.expires ~= '' and tonumber(ep.expires) or now + 7 * 24 * 60 * 60 * 1000
  call('HSET', c.P .. 'cw', h, int(now))
  call('ZADD', c.P .. 'cl', int(till), h)
  setdue(c, till)
end

-- unpark takes the messages of h that rest out of their pause, since nobody will wait for them, and returns how many they are. A
-- group in which nothing of another conversation waits is free at once.
local function unpark(c, h, conv)
  local _, mark, w = lock_parse(lock_get(c, conv.g))
  if mark ~= '~' then return 0 end
  local mine, others = {}, w
  for _, l in ipairs({'t', 'e', 's'}) do
    for _, r in ipairs(call('LRANGE', c.P .. 'b:' .. conv.g .. ':' .. l, 0, 999)) do
      local head = read(c, r)
      local owner = head and sub(head, 1, #h)
      if owner == h then mine[#mine + 1] = r end
      if not owner or owner == h or not conv_get(c, owner) then others = others - 1 end
    end
  end
  local n = resting(c, mine)
  if n > 0 then rename(c, mine, 1, #mine, 'backlog') end
  if others <= 0 then
    call('ZREM', c.P .. 'retry', conv.g)
    free(c, conv.g, w)
  end
  return n
end

-- leave removes everything of the local side that END removes: waiting messages (lazily: what is left in streams and lists is
-- consumed on sight, H9), timer, lifetime, membership. The counter of ready messages goes down at once.
function leave(c, h, conv)
  local resolved = call('HMGET', c.P .. 'dc', h, '+' .. h)
  local done, early = tonumber(resolved[1] or 0), 0
  for n in string.gmatch(resolved[2] or '', '%d+') do -- those that are gone before an earlier one (rare/tokens.lua)
    if tonumber(n) >= done then early = early + 1 end
  end
  local rested, lost = unpark(c, h, conv), 0
  for from, to in string.gmatch(conv.lost or '', '(%d+)-(%d+)') do lost = lost + math.max(0, tonumber(to) - math.max(tonumber(from), done)) end
  if c.parked then park().drop(c, conv.g, nil, h) end
  c.retrying = c.retrying - rested
  c.ready = c.ready - (conv.rcv - done - early - lost) - conv.w + rested
  c.dirty = true
  c.cv[h] = false
  c.cvd[h] = true
  call('HDEL', c.P .. 'dc', h, '+' .. h)
  call('ZREM', c.P .. 'tm', h)
  call('HDEL', c.P .. 'tmc', h)
  call('HDEL', c.P .. 'tmn', h)
  call('ZREM', c.P .. 'lt', h)
  group_leave(c, conv.g)
  if c.retained > 0 or c.retention then forget_retained(c, h) end
  wake(c)
end

-- over reports that the dialog's lifetime has ended, which is the same on both sides: nothing more is taken (DG-11).
local function over(m, now) return m.expires ~= '' and tonumber(m.expires) <= now end

-- arrive stores what came from the far side of a conversation at t. m: from, role (of the sender), svc (the sender's), to
-- (service here), toh (handle here when the sender is the target), contract, expires, seq, k, rest, body, code and text when
-- the body was found invalid; anyway when what is missing before it will never come. Answers stored, known, dropped, bounce, refused or
-- gap with a status text, or lost with the code and text of an Error: the conversation is not known here any more, though nobody ended it.
function arrive(t, now, m)
  if not can_send(t) then return 'refused', 'the queue ' .. t.name .. ' is off' end
  local h = m.role == 'I' and far_handle(t, m.from) or m.toh
  local conv = conv_get(t, h)
  if m.k == 'A' then
    local ed = call('HGET', t.P .. 'ed', h)
    if ed and sub(ed, 1, 2) == 'DO' then close_endpoint(t, now, h, ep_get(t, h)) end
    return 'stored'
  end
  if not conv then
    local ed = call('HGET', t.P .. 'ed', h)
    if not ed and call('HEXISTS', t.P .. 'cw', h) == 1 then return 'dropped' end
    if ed then
      if sub(ed, 1, 2) == 'DO' and (m.k == 'D' or m.k == 'E') then close_endpoint(t, now, h, ep_get(t, h)) end
      return 'dropped'
    end
    if over(m, now) then return 'dropped' end
    if m.seq ~= 0 or m.role ~= 'I' then return 'lost', '-8426', 'The conversation is not known at its far side any more.' end
    if call('HEXISTS', t.P .. 'svc', m.to) == 0 then return 'refused', 'the queue ' .. t.name .. ' does not serve ' .. m.to end
    if m.code then return 'bounce' end
    conv = create_endpoint(t, now, h, 'T', m.to, m.svc, m.from, m.contract, m.expires, 'g:' .. h, 'CO',
      lane_for(t, m.contract, m.to, m.svc))
  end
  if over(m, now) then return 'dropped' end
  if m.k == 'E' then
    if conv.st == 'ER' then return 'known' end -- one Error each side, whoever made it (SM-11)
    append_system(t, now, h, conv, 'E', m.rest, m.body, int(m.seq))
    return 'stored'
  end
  if m.seq < conv.rcv then -- the far side lost its last writes and gave the number again; what has it here may be another message
    event(t, now, 'sequence_repeated', 'conversation_handle', h, 'message_sequence_number', int(m.seq), 'message_id', string.match(m.rest, '^[^|]*'))
    return 'known'
  end
  if m.seq > conv.rcv and not m.anyway then return 'gap', 'an earlier message of the conversation is missing' end
  if m.code then return 'bounce' end
  if m.seq > conv.rcv then -- this side lost its last writes
    event(t, now, 'messages_lost', 'conversation_handle', h, 'from', int(conv.rcv), 'to', int(m.seq - 1))
    conv.lost = (conv.lost or '') .. int(conv.rcv) .. '-' .. int(m.seq) .. ' '
    conv.rcv = m.seq
  end
  conv.rcv = conv.rcv + 1
  t.cvd[h] = true
  if m.k == 'D' and conv.st ~= 'ER' then conv.st = 'DI' end
  put(t, conv.lane, h .. '|' .. int(#m.body) .. '|' .. int(m.seq) .. '||' .. int(now) .. '|' .. m.k .. '|' .. m.rest, m.body)
  t.ready = t.ready + 1
  wake(t)
  return 'stored'
end
