-- effects: what a unit of work staged. ARGV holds, for each effect: unit number, kind, and the kind's arguments (ARITY). All effects
-- of all units are checked first (reads only); a unit with an effect that must fail is refused as a whole (G1).
-- S send: handle, rest, body, code, text          (code, text: the body is invalid for its type; it bounces)
-- Q send to queue: queue, owner, ttl, delay, rest, body         q the same without the three: queue, rest, body
-- B begin: handle, from, to, contract, group, lifetime ms, level
-- E end: handle, code, text, cleanup              T timer: handle, when (see instant), cron record or ''
-- X cancel timer: handle    M move: handle, group    P put state: group, key, value    Z delete state: group, key
-- D dead-letter one message of the unit: ref, reason, description
-- C command to another queue, after the commit and at least once: queue, what (end, enable), handle, code, text, epoch
local ARITY = {S = 5, Q = 6, q = 3, B = 7, E = 4, T = 3, X = 1, M = 2, P = 3, Z = 2, D = 3, C = 6}

-- Checking works on shadows: the state each handle would have after the effects before.
-- A unit that is refused takes its shadows with it (undo), so that it leaves no trace in the check of the next.
local function shadow(X, c, h)
  local sh = X.sh
  local s = sh[h]
  if s == nil then
    local conv = conv_get(c, h)
    s = conv and {st = conv.st, g = conv.g} or false
    if s then local ep = ep_get(c, h); s.expires = ep and ep.expires or '' end
    sh[h] = s
  end
  if X.undo[h] == nil then
    X.undo[h] = s and {st = s.st, g = s.g, expires = s.expires} or false
  end
  return s
end

-- foreign reports whether group g is held by a reader other than the unit that acts.
local function foreign(c, g, own)
  if g == own then return false end
  local holder = lock_parse(lock_get(c, g))
  return holder ~= ''
end

local check = {}
function check.S(c, X, own, h)
  local s = shadow(X, c, h)
  if not s then return '8426' end
  if s.st ~= 'SO' and s.st ~= 'CO' then return '8429' end
  if s.expires ~= '' and tonumber(s.expires) <= X.now then return '8429' end -- whoever keeps house has not been there yet
  if c.retention and not can_send(c) then return '9618' end
  s.st = 'CO'
end
-- queue_ctx is the context of another queue by name: nil when it is out of reach of this script, false when there is none.
local queue_ctxs = {}
local function queue_ctx(c, X, q)
  local t = queue_ctxs[q]
  if t ~= nil then return t end
  local P = '{' .. X.ns .. '/' .. q .. '}:'
  if P ~= c.P and not X.direct then return nil end
  t = P == c.P and c or open(P)
  queue_ctxs[q] = t
  return t
end

function check.Q(c, X, own, q)
  if queue_ctx(c, X, q) == false then return 'MessagingEntityNotFound' end
end
check.q = check.Q
function check.B(c, X, own, h, from, to, contract, group)
  if call('HEXISTS', c.P .. 'svc', from) == 0 then return '8423' end
  local s = call('HGET', c.P .. 'gr', group)
  if s and fields(s)[1] ~= from then return '8414' end
  if shadow(X, c, h) then return '8426' end
  X.sh[h] = {st = 'SO', g = group, expires = ''}
end
function check.E(c, X, own, h, code, text, cleanup)
  local s = shadow(X, c, h)
  if not s then
    if cleanup == '1' and call('HEXISTS', c.P .. 'ep', h) == 1 then return nil end
    local ed = call('HGET', c.P .. 'ed', h)
    return ed and '8427' or '8426'
  end
  if foreign(c, s.g, own) then return 'GroupLocked' end
  X.sh[h] = false
end
function check.T(c, X, own, h, due)
  local s = shadow(X, c, h)
  if not s then return call('HEXISTS', c.P .. 'ed', h) == 1 and '8458' or '8426' end
  if foreign(c, s.g, own) then return 'GroupLocked' end
  if s.expires ~= '' and (first_instant(X.now, due) or X.now) > tonumber(s.expires) then return '8410' end
end
function check.X(c, X, own, h)
  local s = shadow(X, c, h)
  if not s then return '8426' end
  if foreign(c, s.g, own) then return 'GroupLocked' end
end
function check.M(c, X, own, h, g2)
  local s = shadow(X, c, h)
  if not s then return call('HEXISTS', c.P .. 'ed', h) == 1 and '8438' or '8426' end
  if foreign(c, s.g, own) or foreign(c, g2, own) then return 'GroupLocked' end
  if s.g ~= g2 and (c.parked and park().find(c, s.g, nil, h) or X.parks and X.parks[h]) then return 'ConversationParked' end
  local ep, r = ep_get(c, h), call('HGET', c.P .. 'gr', g2)
  if r and ep and fields(r)[1] ~= ep.svc then return '8439' end
  s.g = g2
end
function check.P(c, X, own, g) if g == '' then return 'NoState' end end
check.Z = check.P

-- What D moves is read here: once the unit is consumed it is gone. The move itself waits for the other effects of the unit, since it
-- may end the conversation or park it; a conversation that it parks cannot be moved.
function check.D(c, X, own, ref, reason, desc)
  local h, b = read(c, ref)
  if not h or X.dead and X.dead[ref] then return end
  local owner = owner_of(h)
  if c.odl == 'park' and owner ~= '' and byte(owner, 2) ~= 58 then
    local s = shadow(X, c, owner)
    if s and s.g ~= own then return 'ConversationParked' end
    X.parks = X.parks or {}
    X.parks[owner] = true
  end
  local counts = call('HMGET', c.P .. 'att', ref, 'e' .. ref)
  local d, p = att_parse(counts[1], c.epoch)
  X.dead = X.dead or {}
  X.dead[ref] = true
  X.dead[#X.dead + 1] = {unit = X.unit, g = own or '', ref = ref, h = h, b = b, reason = reason, desc = desc, d = d, p = p, last = counts[2] or ''}
end

-- check_all walks n effects from ARGV[at] and returns unit → error code and where the walk ended. own[u] is the unit's group.
function check_all(c, X, at, n, own)
  local bad, text, u = {}, nil, nil
  for _ = 1, n do
    local k = ARGV[at + 1]
    if ARGV[at] ~= text then
      text = ARGV[at]
      u = tonumber(text)
      X.unit = u
      X.undo = {}
    end
    if not bad[u] then
      bad[u] = check[k](c, X, own[u], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], ARGV[at + 6])
      if bad[u] then for h, old in pairs(X.undo) do X.sh[h] = old end end
    end
    at = at + 2 + ARITY[k]
  end
  return bad, at
end

-- move takes conversation h to group g2: cv, its waiting entries to the tails of g2's lists, membership (DG-9, H8).
local function move_conversation(c, h, conv, g2)
  local g1 = conv.g
  if g1 == g2 then return end
  local moved, kept = {t = {}, e = {}, s = {}}, {}
  local n, stay = 0, 0
  local holder, mark = lock_parse(lock_get(c, g1))
  for _, l in ipairs({'t', 'e', 's'}) do
    local key = c.P .. 'b:' .. g1 .. ':' .. l
    local keep = {}
    for _, r in ipairs(call('LRANGE', key, 0, -1)) do
      local head = read(c, r)
      if head and sub(head, 1, #h) == h then
        moved[l][#moved[l] + 1] = r
        n = n + 1
      else
        keep[#keep + 1] = r
      end
    end
    stay = stay + #keep
    if #moved[l] > 0 then
      call('DEL', key)
      for i = 1, #keep, 4000 do call('RPUSH', key, unpack(keep, i, math.min(i + 3999, #keep))) end
      if mark == '~' then
        local m = resting(c, moved[l])
        c.retrying = c.retrying - m
        c.ready = c.ready + m
      end
      rename(c, moved[l], 1, #moved[l], 'backlog')
      for i = 1, #moved[l], 4000 do
        call('RPUSH', c.P .. 'b:' .. g2 .. ':' .. l, unpack(moved[l], i, math.min(i + 3999, #moved[l])))
      end
    end
  end
  if holder ~= '' then
    lock_set(c, g1, held_value(holder, stay))
  elseif stay == 0 and mark ~= '!' then
    call('ZREM', c.P .. 'retry', g1)
    call('ZREM', c.P .. 'ready', g1)
    lock_set(c, g1, false)
  else
    lock_set(c, g1, mark .. int(stay))
  end
  local ep = ep_get(c, h)
  group_join(c, g2, ep.svc)
  group_leave(c, g1)
  conv.g = g2
  c.cvd[h] = true
  if n > 0 then added(c, g2, n) end
end

function check.C() end

local apply = {}
function apply.C(c, X, q, what, h, code, text, epoch)
  transmit_later(c, X.now, 'command:' .. q, '', {'k', 'C', 'to', q, 'what', what, 'handle', h, 'code', code, 'text', text, 'epoch', epoch, 'body', ''})
end
function apply.S(c, X, h, rest, body, code, text)
  local conv = conv_get(c, h)
  if c.retention then retain_sent(c, X.now, h, conv, rest, body) end
  return send_on(c, X.now, X.ns, X.direct, h, conv, 'S', rest, body, code, text)
end
function apply.Q(c, X, q, owner, ttl, delay, rest, body)
  local t = queue_ctx(c, X, q)
  local on = t and can_send(t)
  if on and not behind_others(c, 'queue:' .. q) then
    if delay ~= '' then
      append_scheduled(t, X.now + tonumber(delay), owner, ttl, rest, body)
    else
      append_plain(t, X.now, owner, ttl, rest, body)
    end
    return
  end
  transmit_later(c, X.now, 'queue:' .. q, t and not on and 'the queue ' .. q .. ' is off' or '', {'k', 'Q', 'to', q, 'owner', owner,
    'ttl', ttl, 'delay', delay, 'rest', rest, 'body', body})
end
function apply.q(c, X, q, rest, body) return apply.Q(c, X, q, '', '', '', rest, body) end
function apply.B(c, X, h, from, to, contract, group, lifetime, level)
  create_endpoint(c, X.now, h, 'I', from, to, '', contract, lifetime ~= '' and int(X.now + tonumber(lifetime)) or '', group, 'SO',
    lane_for(c, contract, from, to))
end
function apply.E(c, X, h, code, text, cleanup)
  local conv = conv_get(c, h)
  if not conv then
    local ep = ep_get(c, h)
    call('HDEL', c.P .. 'ep', h)
    call('HDEL', c.P .. 'ed', h)
    cleaned(c, X.now, h, ep)
    return
  end
  end_conversation(c, X.now, X.ns, X.direct, h, conv, code, text, cleanup == '1')
end
function apply.T(c, X, h, due, cron)
  local at = first_instant(X.now, due)
  if cron ~= '' then
    arm_cron(c, 'tm', h, at)
    call('HSET', c.P .. 'tmc', h, cron)
    return
  end
  call('ZADD', c.P .. 'tm', int(at), h)
  call('HDEL', c.P .. 'tmc', h)
  call('HDEL', c.P .. 'tmn', h)
  setdue(c, at)
  c.dirty = true
end
function apply.X(c, X, h)
  call('ZREM', c.P .. 'tm', h)
  call('HDEL', c.P .. 'tmc', h)
  call('HDEL', c.P .. 'tmn', h)
  c.dirty = true
end
function apply.M(c, X, h, g2)
  move_conversation(c, h, conv_get(c, h), g2)
end
function apply.D() end -- turn does it, behind all other effects
function apply.P(c, X, g, key, value)
  call('HSET', c.P .. 'st:' .. g, key, value)
  if not c.hasstate then
    call('HSET', c.P .. 'meta', 'hasstate', '1')
    c.hasstate = true
  end
  c.dirty = true
end
function apply.Z(c, X, g, key)
  call('HDEL', c.P .. 'st:' .. g, key)
  c.dirty = true
end

-- apply_all does the effects of units that are not bad. answers[i] is what the i-th effect gave (a send: its number).
function apply_all(c, X, at, n, bad)
  local answers, all = {}, next(bad) == nil
  for i = 1, n do
    local k = ARGV[at + 1]
    if all or not bad[tonumber(ARGV[at])] then
      answers[i] = apply[k](c, X, ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], ARGV[at + 6], ARGV[at + 7], ARGV[at + 8])
    end
    at = at + 2 + ARITY[k]
  end
  return answers
end
