-- receive: hand out messages under lock tokens. A token is a reader of its own that holds one message, so each has its own end in rd;
-- those of one group share its lock (rare/tokens.lua).
-- lib: names base entry lock stored foreign waits notify park attempt dead giveback dialog transmit take backlog fresh pick
-- KEYS 1: meta of the queue or sub-queue.
-- ARGV 1: now in ms, '' for the server's  2: flags (d direct writes)  3: lock duration in ms  4: groups and plain messages at most
--   5: messages of one group at most  6: group to receive from, '' any  7: conversation to receive from, '' any  8: the tokens, never
--   used before: as many messages at most; more follow.
-- RETURNS what turn returns, without results: the slot of a message is the number of its token, from 0. Or NOENT, OFF, EXISTS when one of
--   the tokens is in use.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return 'NOENT' end
if not can_receive(c) then return 'OFF' end
c.direct = find(ARGV[2], 'd', 1, true) ~= nil
local P, most, top, group, conversation = c.P, #ARGV - 7, tonumber(ARGV[5]), ARGV[6], ARGV[7]
local slots = {}
for i = 0, most - 1 do slots[i + 1] = int(i) end
for _, lease in ipairs(call('ZMSCORE', P .. 'rd', unpack(ARGV, 8))) do
  if lease then return 'EXISTS' end
end
call('HDEL', P .. 'meta', '_')

-- What is read is the first token's until each message has its own.
local me = ARGV[8]
local H = hand_new(c, me, now, 1, slots, most, false, '')
H.eps = {}
H.n = math.min(most, tonumber(ARGV[4]))
local again
-- Of a few groups several messages are wanted: they are found once what is unread is filed.
if group == '' and H.n < most then file_all(c, now, most) end
if group == '' then again = receive_any(H) else again = receive_group(H, group, conversation) end
emit_kept(H)
H.n = most

-- handed_out calls f(number of the token, ref, group) for each message, in the order of the reply.
local function handed_out(f)
  for s, ref, g in string.gmatch(table.concat(H.win, '', 1, H.nw), '(%d+) (%S+) ([^\n]*)\n') do f(tonumber(s), ref, g) end
end

-- more hands out what waits next of a group that this call holds.
local function more(g)
  local _, _, w = lock_parse(lock_get(c, g))
  local n = math.min(top - 1, left(H), w)
  if n <= 0 then return end
  local refs = conversation == '' and pop(c, g, n) or pick_conversation(c, g, conversation, n, true)
  lock_set(c, g, held_value(me, w - #refs))
  for _, item in ipairs(sift(H, g, refs, claim(c, me, refs), (counts_of(c, refs)))) do emit(H, slot(H, false), g, {item}) end
end
if top > 1 then
  local groups = {}
  handed_out(function(_, _, g) if g ~= '' then groups[#groups + 1] = g end end)
  for _, g in ipairs(groups) do more(g) end
end

if H.units > 0 then emit_endpoints(H) end

local order, of, win, ends, lane = {}, {}, {}, {}, nil
local till = int(now + tonumber(ARGV[3]))
handed_out(function(s, ref, g)
  local token = ARGV[8 + s]
  if s == 0 then lane = lane_of(c, ref) else rename(c, {ref}, 1, 1, token) end
  if g ~= '' and not of[g] then
    of[g] = {}
    order[#order + 1] = g
  end
  if g ~= '' then of[g][#of[g] + 1] = token end
  ends[#ends + 1] = till; ends[#ends + 1] = token
  win[#win + 1] = token; win[#win + 1] = ref .. ' ' .. g .. '\n'
end)
for i = 2, #win, 2 do win[i] = int(#H.bodies[i / 2 + 2]) .. ' ' .. win[i] end
for _, g in ipairs(order) do
  local tokens = of[g]
  local _, _, w = lock_parse(lock_get(c, g))
  lock_set(c, g, held_value(tokens[1], w))
  if #tokens > 1 then
    local members = {}
    for i, token in ipairs(tokens) do members[2 * i - 1] = int(i); members[2 * i] = token end
    call('ZADD', P .. 'tk:' .. g, unpack(members))
  end
end
for l in string.gmatch(c.lanes, '[^,]+') do
  if P .. 's:' .. l ~= lane then pcall_('XGROUP', 'DELCONSUMER', P .. 's:' .. l, 'w', me) end
end
if H.units > 0 then
  call('ZADD', P .. 'rd', unpack(ends))
  hset(P .. 'win', win, #win)
  setdue(c, now + tonumber(ARGV[3]))
  c.locked = c.locked + H.msgs
  c.ready = c.ready - H.msgs
  c.dirty = true
elseif not again and not c.asleep then
  call('HSET', P .. 'meta', 'asleep', '1')
  c.asleep = true
end
if c.actq and group == '' then received(c, H.units == 0 and not again) end
flush()
local head = {H.nogroup and 'NOGROUP' or 'ON', int(now), again and '1' or '0', '0', int(c.ready), int(c.nextdue), '0', '0', '0', '', int(H.units)}
local reply = H.bodies
reply[1] = table.concat(head, '\n') .. '\n'
if H.no > 0 then
  H.out[H.no + 1] = ''
  reply[2] = table.concat(H.out, '\n', 1, H.no + 1)
end
return reply
