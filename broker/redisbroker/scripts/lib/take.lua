-- take: handing out. A hand collects the units of one turn: it takes slots, claims bodies, drops what ended or expired on sight.
-- hand makes the collector of a turn. tokens: slot numbers, the first nempty of them slots without a unit.
local function hand_new(c, me, now, top, tokens, nempty, withstate, record)
  return {c = c, me = me, now = now, top = top, tokens = tokens, n = #tokens, nempty = nempty, used = 0, closed = {}, out = {}, no = 0,
    bodies = {'', ''}, nb = 2, win = {record}, nw = 1, units = 0, alone = false, more = false, broken = {}, open = {}, state = withstate and c.hasstate, msgs = 0}
end

-- slot gives the next slot, or nil. A unit that must run alone gets an empty slot and closes it for others.
local function slot(H, alone)
  while H.used < H.n do
    local i = H.used + 1
    if alone and i > H.nempty then return nil end
    H.used = i
    local s = H.tokens[i]
    if not H.closed[s] then
      if alone then H.closed[s] = true end
      return s
    end
  end
  return nil
end

local function left(H) return H.n - H.used end

-- emit_state writes the state of a group behind its unit.
local function emit_state(H, g)
  local out, no = H.out, H.no
  local st = g ~= '' and call('HGETALL', H.c.P .. 'st:' .. g) or {}
  no = no + 1; out[no] = int(#st / 2)
  for i = 1, #st, 2 do
    out[no + 1] = st[i]; out[no + 2] = int(#st[i + 1]); out[no + 3] = st[i + 1]
    no = no + 3
  end
  H.no = no
end

-- emit writes one unit to the reply: slot, number of messages, group; then for each message ref, counts, state, header;
-- then the group's state.
local function emit(H, s, g, items)
  local out, no = H.out, H.no
  local n = #items
  out[no + 1] = s; out[no + 2] = n == 1 and '1' or int(n); out[no + 3] = g
  no = no + 3
  local w, nw = H.win, H.nw
  w[nw + 1] = s; w[nw + 2] = ' '
  nw = nw + 2
  for i = 1, n do
    local m = items[i]
    out[no + 1] = m[1]; out[no + 2] = m[4] or ''; out[no + 3] = m[5] or ''; out[no + 4] = m[2]
    no = no + 4
    H.nb = H.nb + 1; H.bodies[H.nb] = m[3]
    if i > 1 then nw = nw + 1; w[nw] = ',' end
    nw = nw + 1; w[nw] = m[1]
    if H.eps and byte(g, 1) == 103 then H.eps[#H.eps + 1] = m[2] end
  end
  w[nw + 1] = ' '; w[nw + 2] = g; w[nw + 3] = '\n'
  H.nw = nw + 3
  H.no = no
  if H.state then emit_state(H, g) end
  H.units = H.units + 1
  H.msgs = H.msgs + n
end

-- emit_one is emit for one message of a group that was never handed out before, in a shorter form: slot, group, ref, state, header.
local function emit_one(H, s, g, ref, state, h, b)
  local out, no, w, nw = H.out, H.no, H.win, H.nw
  if H.eps and byte(g, 1) == 103 then H.eps[#H.eps + 1] = h end
  out[no + 1] = s; out[no + 2] = g; out[no + 3] = ref; out[no + 4] = state or ''; out[no + 5] = h
  H.no = no + 5
  H.nb = H.nb + 1; H.bodies[H.nb] = b
  w[nw + 1] = s; w[nw + 2] = ' '; w[nw + 3] = ref; w[nw + 4] = ' '; w[nw + 5] = g; w[nw + 6] = '\n'
  H.nw = nw + 6
  if H.state then emit_state(H, g) end
  H.units = H.units + 1
  H.msgs = H.msgs + 1
end

-- emit_endpoints writes, behind all units, what never changes of the endpoints whose messages were handed out: their number, and
-- a line handle ep for each.
local function emit_endpoints(H)
  local out, hs, seen = H.out, {}, {}
  for _, h in ipairs(H.eps) do
    local owner = sub(h, 1, find(h, '|', 1, true) - 1)
    if not seen[owner] then
      seen[owner] = true
      hs[#hs + 1] = owner
    end
  end
  local count, no = H.no + 1, H.no + 1
  for i = 1, #hs, 4000 do
    local v = call('HMGET', H.c.P .. 'ep', unpack(hs, i, math.min(i + 3999, #hs)))
    for k = 1, #v do
      if v[k] then
        no = no + 1
        out[no] = hs[i + k - 1] .. ' ' .. v[k]
      end
    end
  end
  out[count] = int(no - count)
  H.no = no
end

-- keep holds a unit of a group back until the lanes were read: entries read in the same call may join it while its backlog is
-- empty and it has fewer than TOP, unless its message must be alone.
local function keep(H, s, g, items, alone)
  local u = {s, g, items}
  H.open[#H.open + 1] = u
  if H.top > 1 and not alone and H.c.lock[g] == H.me then H.open[g] = u end
end

local function emit_kept(H)
  for i = 1, #H.open do
    local u = H.open[i]
    if #u[3] > 1 then order(u[3]) end
    emit(H, u[1], u[2], u[3])
  end
end

-- best_ready takes up to n groups off those that wait, best first; with a level only those of at least that. nil: none.
local function best_ready(c, n, level)
  local r
  if level then
    r = call('ZRANGEBYSCORE', c.P .. 'ready', '-inf', '(' .. int((11 - level) * 1e14), 'LIMIT', '0', int(n))
  else
    r = call('ZPOPMIN', c.P .. 'ready', int(n))
  end
  if #r == 0 then return nil end
  local out = {}
  for i = 1, #r, level and 1 or 2 do out[#out + 1] = {g = r[i]} end
  if level then call('ZREM', c.P .. 'ready', unpack(r)) end
  return out
end

-- hand_ready hands out up to n groups that wait free, with a level only those of at least that. Groups of which nothing is alive
-- hide nobody: the next ones are tried, at most LOOKS times in one script.
local LOOKS = 50
local function hand_ready(H, n, level)
  for _ = 1, LOOKS do
    if n <= 0 then return end
    local list = best_ready(H.c, n, level)
    if not list then return end
    local before = #H.open
    hand_groups(H, list)
    n = n - (#H.open - before)
    if H.alone then return end
  end
  H.more = true
end

-- hand_plain hands out up to n plain messages that wait again.
local function hand_plain(H, n)
  while n > 0 do
    local r = call('ZPOPMIN', H.c.P .. 'bp', int(n))
    if #r == 0 then
      H.noplain = true
      return
    end
    n = hand_plain_once(H, r)
  end
end
