-- turn: settle what a reader finished, then receive what comes next (protocol section 3, fused).
-- lib: names base entry lock stored foreign waits notify park attempt dead giveback dialog retain transmit instant scheduled effects take backlog fresh pick
-- KEYS 1: meta of the queue or sub-queue. All other keys are derived from its prefix and share its slot; direct writes to other
--   queues happen on servers that are no cluster only.
-- ARGV 1: reader  2: now in ms, '' for the server's  3: lease ms  4: flags: d direct writes, s fetch state, r stop
--   after settling, l all refs are of lane 5, o every group has one ref and stands alone in its vector, e send what never changes of
--   the endpoints  5: TOP
--   6: number of free slots  7: of these, empty ones  8: record of units still held after this call  9: namespace
--   10: bytes of committed bodies  11: plain refs committed  12: group refs committed  13: groups committed
--   14: dc pairs  15: att fields to drop  16: handles of system messages committed  17: hot groups (no hand-over)
--   18: effects  19: other units  20: group to receive from, '' any  21: conversation to receive from, '' any
--   22: number of this call, of one reader never the same twice and always greater  23: number of the reader's last answered call that
--   settled or handed out something (its record has it)  then these vectors in this order: free slots, plain refs,
--   group refs, groups each followed by its number of refs, dc pairs, att fields, system handles, hot groups, effects (see effects), other units: kind (R rollback, D
--   dead-letter, M dead-letter as no message of ours, G give back, U uncertain rollback), group, number of refs, refs, pause ms or −1, random 0…1, last error,
--   reason, description.
-- RETURNS a list: lines about the call, lines of the units, then the bodies of the messages handed out, in order (each apart, since Lua
--   hashes and copies a string once more for everything it is joined with). The lines: status (ON, OFF, NOGROUP when a lane lost its group), now, again, alone, ready, next due, 1 when the
--   next call may be one of plain, 1 when units carry state, number of results, results (unit number and what it led to; a plain commit has none), numbers of sends,
--   number of units, units (emit in lib/take.lua), with flag e and units the endpoints (emit_endpoints); or FENCED (the lease is over, or the
--   record has another number: the server has lost its last writes, and with them what this reader knows), NOENT.
-- T holds the steps of a turn: the embedded server allows a script 200 local names only.
local T = {}
local P = sub(KEYS[1], 1, -5)
local c = open(P)
if not c then return 'NOENT' end
local me, now, flags = ARGV[1], clock(ARGV[2]), ARGV[4]
function T.has(f) return find(flags, f, 1, true) ~= nil end
c.direct = T.has('d')
local lease = call('ZSCORE', P .. 'rd', me)
if not lease or tonumber(lease) < now then return 'FENCED' end
if sub(call('HGET', P .. 'win', me) or '#0\n', 1, #ARGV[23] + 2) ~= '#' .. ARGV[23] .. '\n' then return 'FENCED' end

-- A is the call: how many of each vector, and where in ARGV each starts.
local A = {nfree = tonumber(ARGV[6]), nplain = tonumber(ARGV[11]), nrefs = tonumber(ARGV[12]), ngroups = tonumber(ARGV[13]),
  ndc = tonumber(ARGV[14]), natt = tonumber(ARGV[15]), nsys = tonumber(ARGV[16]), nhot = tonumber(ARGV[17]),
  neff = tonumber(ARGV[18]), nother = tonumber(ARGV[19]), free = 24}
A.plain = A.free + A.nfree
A.refs = A.plain + A.nplain
A.groups = A.refs + A.nrefs
local single = T.has('o')
A.dc = A.groups + (single and A.ngroups or 2 * A.ngroups)
A.att = A.dc + A.ndc
A.sys = A.att + A.natt
A.hot = A.sys + A.nsys
A.eff = A.hot + A.nhot
A.other = A.eff
local groups, gn, bad, anybad, results, freed = {}, {}, {}, false, {}, {}
local X = {ns = ARGV[9], direct = c.direct, now = now, sh = {}}

-- look reads the locks of the groups that settle and checks every effect. Nothing is written before.
function T.look()
  local own, lost, np = {}, {}, A.nplain
  if single then
    local at = A.groups - 1
    for i = 1, A.ngroups do
      local g = ARGV[at + i]
      groups[i] = g
      gn[i] = 1
      own[np + i] = g
    end
  else
    for i = 1, A.ngroups do
      groups[i] = ARGV[A.groups + 2 * i - 2]
      gn[i] = tonumber(ARGV[A.groups + 2 * i - 1])
      own[np + i] = groups[i]
    end
  end
  for i = 1, A.ngroups, 4000 do
    local v = call('HMGET', P .. 'lock', unpack(groups, i, math.min(i + 3999, A.ngroups)))
    for k = 1, #v do c.lock[groups[i + k - 1]] = v[k] end
  end
  for i = 1, A.ngroups do
    local v = c.lock[groups[i]]
    if v ~= me and lock_parse(v) ~= me then lost[A.nplain + i] = true end
  end
  if A.neff > 0 then bad, A.other = check_all(c, X, A.eff, A.neff, own) end
  for u in pairs(lost) do bad[u] = 'LOST' end
  anybad = next(bad) ~= nil
end

-- commit_fast consumes everything straight from ARGV: no unit is refused.
function T.commit_fast()
  if c.retention and A.nrefs > 0 then retain_received(c, now, ARGV, A.refs, A.refs + A.nrefs - 1) end
  if T.has('l') then
    consume_range(c, A.plain, A.plain + A.nplain + A.nrefs - 1)
  else
    consume(c, ARGV, A.plain, A.plain + A.nplain + A.nrefs - 1)
  end
  for i = A.dc, A.dc + A.ndc - 1, 4000 do call('HSET', P .. 'dc', unpack(ARGV, i, math.min(i + 3999, A.dc + A.ndc - 1))) end
  for i = A.att, A.att + A.natt - 1, 4000 do call('HDEL', P .. 'att', unpack(ARGV, i, math.min(i + 3999, A.att + A.natt - 1))) end
  for i = A.sys, A.sys + A.nsys - 1 do
    local conv = conv_get(c, ARGV[i])
    if conv then
      conv.w = conv.w - 1
      c.cvd[ARGV[i]] = true
    end
  end
  return A.nplain + A.nrefs, tonumber(ARGV[10])
end

-- uncommon defines the steps that few turns take.
function T.uncommon()
  -- unit_refs returns the refs of the i-th group unit, which start at ARGV[at].
  function T.unit_refs(at, i)
    local t = {}
    for k = 1, gn[i] do t[k] = ARGV[at + k - 1] end
    return t
  end

  function T.commit_slow()
    local ok, at = {}, A.refs
    for i = 1, A.nplain do if not bad[i] then ok[#ok + 1] = ARGV[A.plain + i - 1] end end
    for i = 1, A.ngroups do
      if not bad[A.nplain + i] then
        for k = at, at + gn[i] - 1 do ok[#ok + 1] = ARGV[k] end
      end
      at = at + gn[i]
    end
    return #ok, settle_slowly(c, now, ok, X.dead)
  end

  -- refuse rolls back a commit whose effects cannot be: uncounted when a reader holds a group it needs, else as a failure.
  function T.refuse(u, g, refs)
    if bad[u] == 'GroupLocked' then
      back(c, g, refs)
    elseif bad[u] ~= 'LOST' then
      fail(c, now, g, refs, 'HandlerError: ' .. bad[u] .. ': an effect was refused at commit', -1, 0, true)
    end
  end

  function T.refuse_bad()
    local at = A.refs
    for i = 1, A.nplain do if bad[i] then T.refuse(i, '', {ARGV[A.plain + i - 1]}) end end
    for i = 1, A.ngroups do
      if bad[A.nplain + i] then T.refuse(A.nplain + i, groups[i], T.unit_refs(at, i)) end
      at = at + gn[i]
    end
    for u = 1, A.nplain + A.ngroups do if bad[u] then results[#results + 1] = int(u) .. ' ' .. bad[u] end end
  end

  -- let_go is for a group whose unit is settled: it is released (hand_over), or stands still when a dead letter parks it.
  function T.let_go(g)
    if c.parking and c.parking[g] then
      local _, _, w = lock_parse(c.lock[g])
      free(c, g, w)
    else
      freed[#freed + 1] = g
    end
  end

  -- stop does what on_dead_letter asks for behind a dead letter of a session, or of a conversation that has not ended.
  function T.stop(g, owner, ref)
    if owner == '' then return end
    local dialog = byte(owner, 2) ~= 58
    if dialog then after_bury(c, now, owner) end
    if c.odl == 'park' and (not dialog or conv_get(c, owner)) then park().hold(c, now, g, owner, ref) end
  end

  -- bury_singles makes dead letters of single messages of units that committed (effect D).
  function T.bury_singles()
    for _, m in ipairs(X.dead) do
      if not bad[m.unit] then
        bury(c, now, m.ref, m.h, m.b, m.reason, m.desc, m.d, m.p, m.last, m.g)
        T.stop(m.g, owner_of(m.h), m.ref)
      end
    end
  end

  -- dead_letter moves a unit to the dead-letter queue; what waits behind it goes on, ends or is parked (on_dead_letter).
  function T.dead_letter(g, refs, reason, desc, why, broken)
    local rows = {}
    for k, r in ipairs(refs) do
      local h, b, f = read(c, r)
      rows[k] = {h, b, f}
    end
    local atts = call('HMGET', P .. 'att', unpack(refs))
    consume(c, refs, 1, #refs)
    c.locked = c.locked - #refs
    for k, r in ipairs(refs) do
      local d, p = att_parse(atts[k], c.epoch)
      local h, b = rows[k][1], rows[k][2]
      if h then
        c.bytes = c.bytes - #(b or '')
        if broken then
          local key, id = lane_of(c, r)
          dead_as_it_is(c, sub(key, #P + 3), id, rows[k][3])
        else
          bury(c, now, r, h, b, reason, desc, d, p, why, g)
        end
        local owner = owner_of(h)
        if owner ~= '' and byte(owner, 2) ~= 58 then gone(c, owner, fields(h)[3], r) end
        if not broken then T.stop(g, owner, r) end
      end
    end
    forget_counts(c, refs)
    if g ~= '' then T.let_go(g) end
  end

  -- settle_others does the units that do not commit.
  function T.settle_others()
    local o = A.other
    for i = 1, A.nother do
      local kind, g, n = ARGV[o], ARGV[o + 1], tonumber(ARGV[o + 2])
      local refs = {}
      for k = 1, n do refs[k] = ARGV[o + 2 + k] end
      o = o + 3 + n
      local code
      if g ~= '' and lock_parse(lock_get(c, g)) ~= me then
        code = 'LOST'
      elseif kind == 'R' or kind == 'U' then
        code = fail(c, now, g, refs, ARGV[o + 2], tonumber(ARGV[o]), tonumber(ARGV[o + 1]), kind == 'R')
      elseif kind == 'G' then
        back(c, g, refs)
        code = 'back'
      else
        T.dead_letter(g, refs, ARGV[o + 3], ARGV[o + 4], ARGV[o + 2], kind == 'M')
        code = 'buried'
      end
      o = o + 5
      results[#results + 1] = int(A.nplain + A.ngroups + i) .. ' ' .. code
    end
  end
end

-- commit consumes. The first write of the script is one that Redis allows when it is full (M3), so settling goes through.
function T.commit()
  call('HDEL', P .. 'meta', '_')
  local done, bytes
  if anybad or X.dead then done, bytes = T.commit_slow() else done, bytes = T.commit_fast() end
  if done == 0 then return end
  c.locked = c.locked - done
  c.bytes = c.bytes - bytes
  c.dirty = true
  if c.pcount > 0 then
    c.pcount = 0
    call('HSET', P .. 'meta', 'pcount', '0')
  end
end

function T.keep_lease()
  local ms = tonumber(ARGV[3])
  if tonumber(lease) - now < ms / 2 then call('ZADD', P .. 'rd', int(now + ms), me) end
end

-- hand_over releases groups that are free now; when more of one waits and the queue is on, its next unit is ours (H6).
function T.hand_over(H, receive)
  local hot, over = {}, {}
  for i = A.hot, A.hot + A.nhot - 1 do hot[ARGV[i]] = true end
  local seen = {}
  for _, g in ipairs(freed) do
    local v = c.lock[g]
    if v == me then
      lock_set(c, g, false)
    elseif not seen[g] then
      seen[g] = true
      local holder, _, w = lock_parse(v)
      if holder == me then
        if receive and #over < A.nfree and ARGV[20] == '' and not hot[g] then
          over[#over + 1] = {g = g}
        else
          free(c, g, w)
        end
      end
    end
  end
  if #over > 0 then hand_groups(H, over) end
end

-- record writes what the reader holds now, and the number of the call when that settled or handed out anything. Such a record
-- stays while the reader lives, so that a call which was lost with the server's last writes is missed.
function T.record(H)
  if H.units > 0 then
    call('HSET', P .. 'win', me, table.concat(H.win, '', 1, H.nw))
  elseif A.nplain + A.ngroups + A.nother > 0 then
    call('HSET', P .. 'win', me, H.win[1])
  end
end

T.look()
if anybad or X.dead or A.nother > 0 then T.uncommon() end
T.commit()
T.keep_lease()
local answers = A.neff > 0 and apply_all(c, X, A.eff, A.neff, bad) or {}
if X.dead then T.bury_singles() end
for i = 1, A.ngroups do
  if bad[A.nplain + i] == nil then
    if c.parking then T.let_go(groups[i]) else freed[#freed + 1] = groups[i] end
  end
end
if anybad then T.refuse_bad() end
if A.nother > 0 then T.settle_others() end

local on = can_receive(c)
local receive = on and A.nfree > 0 and not T.has('r')
local tokens = {}
for i = 1, A.nfree do tokens[i] = ARGV[A.free + i - 1] end
local H = hand_new(c, me, now, tonumber(ARGV[5]), tokens, tonumber(ARGV[7]), T.has('s'),
  '#' .. ARGV[22] .. '\n' .. ARGV[8])
H.eps = T.has('e') and {}
T.hand_over(H, receive)
local again = false
if receive then
  if ARGV[20] == '' then again = receive_any(H) else again = receive_group(H, ARGV[20], ARGV[21]) end
end
emit_kept(H)
if H.eps and H.units > 0 then emit_endpoints(H) end
if H.units > 0 then
  c.locked = c.locked + H.msgs
  c.ready = c.ready - H.msgs
  c.dirty = true
end
if receive and H.units == 0 and not again and not H.alone and not c.asleep then
  call('HSET', P .. 'meta', 'asleep', '1')
  c.asleep = true
end
T.record(H)
if receive and c.actq and ARGV[20] == '' then received(c, H.units == 0 and not again and not H.alone) end
flush()

local sends, na = {}, 0
for i = 1, A.neff do
  if answers[i] then
    na = na + 1
    sends[na] = int(answers[i])
  end
end
local head = {H.nogroup and 'NOGROUP' or on and 'ON' or 'OFF', int(now), again and '1' or '0', H.alone and '1' or '0', int(c.ready),
  int(c.nextdue), only_plain(c) and (H.noplain or call('EXISTS', P .. 'bp') == 0) and '1' or '0', H.state and '1' or '0', int(#results)}
for i = 1, #results do head[9 + i] = results[i] end
head[#head + 1] = table.concat(sends, ' ')
head[#head + 1] = int(H.units)
local reply = H.bodies
reply[1] = table.concat(head, '\n') .. '\n'
if H.no > 0 then
  H.out[H.no + 1] = ''
  reply[2] = table.concat(H.out, '\n', 1, H.no + 1)
end
-- What a lost reply said must be told again: resume asks for results that are not plain commits.
if #results > 0 then call('HSET', P .. 'lr', me, ARGV[22] .. '\n' .. table.concat(results, '\n')) end
return reply
