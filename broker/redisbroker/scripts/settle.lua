-- settle: end deliveries by their lock tokens, each on its own feet (rare/tokens.lua).
-- lib: names base entry lock stored foreign waits notify park attempt dead giveback dialog retain transmit instant scheduled effects tokens
-- KEYS 1: meta of the queue or sub-queue.
-- ARGV 1: now in ms, '' for the server's  2: flags (d direct writes)  3: namespace  4: number of this call, never the same twice  5: number
--   of tokens  6: number of effects, then the effects (see effects; the unit is the number of the token), then for each token: token, kind (C
--   commit, R rollback, D dead-letter, G give back), pause ms or −1, random 0…1, last error, reason, description.
-- RETURNS a line for each token: nothing of one that committed, else what it led to (see turn), LOST when the token holds nothing (any
--   more). The same again when the call is repeated within a minute. NOENT.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return 'NOENT' end
local P, n, neffects = c.P, tonumber(ARGV[5]), tonumber(ARGV[6])
local before = call('GET', P .. 'done:' .. ARGV[4])
if before then return before end
c.direct = find(ARGV[2], 'd', 1, true) ~= nil
call('HDEL', P .. 'meta', '_')

-- How the effects end is known once they are checked. A verb that needs the lock of a group is refused while other tokens share it.
local X, start, bad = {ns = ARGV[3], direct = c.direct, now = now, sh = {}}, 7, {}
local function at(i, k) return ARGV[start + 7 * (i - 1) + k] end
local first = #ARGV - 7 * n + 1
local tokens = {}
for i = 1, n do tokens[i] = ARGV[first + 7 * (i - 1)] end
local list = held_by(c, now, tokens)
if neffects > 0 then
  local own = {}
  for i = 1, n do own[i] = list[i] and call('ZCARD', P .. 'tk:' .. list[i].g) < 2 and list[i].g or '' end
  bad = check_all(c, X, start, neffects, own)
end
start = first
local codes, fast, groups = {}, {}, {}

-- release lets go the group of a message that is gone.
local function release(g)
  if g == '' then return end
  local _, _, w = lock_parse(lock_get(c, g))
  free(c, g, w)
end

-- commit consumes a message, at once or, when it needs no look since it is of no conversation, together with the others.
local function commit(u)
  leave_lock(c, u.g, u.token)
  groups[#groups + 1] = u.g
  if byte(u.g, 1) == 103 or X.dead and X.dead[u.ref] then
    c.bytes = c.bytes - settle_slowly(c, now, {u.ref}, X.dead)
  else
    fast[#fast + 1] = u.ref
    c.bytes = c.bytes - u.bytes
  end
  c.locked = c.locked - 1
  if c.pcount > 0 then
    c.pcount = 0
    call('HSET', P .. 'meta', 'pcount', '0')
  end
end

-- stop does what on_dead_letter asks for behind a dead letter of a session, or of a conversation that has not ended.
local function stop(g, owner, ref)
  if owner == '' then return end
  local dialog = byte(owner, 2) ~= 58
  if dialog then after_bury(c, now, owner) end
  if c.odl == 'park' and (not dialog or conv_get(c, owner)) then park().hold(c, now, g, owner, ref) end
end

-- bury_one moves the message of u to the dead-letter queue.
local function bury_one(u, why, reason, desc)
  local d, p = att_parse(call('HGET', P .. 'att', u.ref), c.epoch)
  local h, b, f = read(c, u.ref)
  consume(c, {u.ref}, 1, 1)
  forget_counts(c, {u.ref})
  c.locked = c.locked - 1
  if h then
    c.bytes = c.bytes - #b
    bury(c, now, u.ref, h, b, reason, desc, d, p, why, u.g)
    local owner = owner_of(h)
    if byte(u.g, 1) == 103 then gone(c, owner, fields(h)[3], u.ref) end
    stop(u.g, owner, u.ref)
  end
  release(u.g)
end

for i = 1, n do
  local u, kind = list[i], at(i, 1)
  if not u then
    codes[i] = 'LOST'
  elseif kind == 'C' and not bad[i] then
    codes[i] = ''
    commit(u)
  end
end
if #fast > 0 then
  consume(c, fast, 1, #fast)
  forget_counts(c, fast)
end
if neffects > 0 then
  for i = 1, n do if not list[i] then bad[i] = 'LOST' end end
  apply_all(c, X, 7, neffects, bad)
end
for _, m in ipairs(X.dead or {}) do -- messages that their commit makes dead letters
  if not bad[m.unit] then
    bury(c, now, m.ref, m.h, m.b, m.reason, m.desc, m.d, m.p, m.last, m.g)
    stop(m.g, owner_of(m.h), m.ref)
  end
end
for _, g in ipairs(groups) do release(g) end
for i = 1, n do
  local u, kind = list[i], at(i, 1)
  if u and not codes[i] then
    local shared = leave_lock(c, u.g, u.token)
    codes[i] = bad[i]
    if bad[i] == 'GroupLocked' then
      back(c, u.g, {u.ref})
    elseif bad[i] then
      fail(c, now, u.g, {u.ref}, 'HandlerError: ' .. bad[i] .. ': an effect was refused at commit', -1, 0, true)
    elseif kind == 'R' then
      codes[i] = fail(c, now, u.g, {u.ref}, at(i, 4), tonumber(at(i, 2)), tonumber(at(i, 3)), true)
    elseif kind == 'G' then
      codes[i] = 'back'
      back(c, u.g, {u.ref})
    else
      codes[i] = 'buried'
      bury_one(u, at(i, 4), at(i, 5), at(i, 6))
    end
    if shared and c.odl == 'end' then forget_ended(c, u.g) end
  end
end
for i = 1, n do if list[i] then forget_token(c, list[i].token, list[i].ref) end end
flush()
local answer = table.concat(codes, '\n')
call('SET', P .. 'done:' .. ARGV[4], answer, 'EX', '60')
return answer
