-- arrive: the target's side of a transmission: store one entry once, whoever sends it and however often (H14–H17).
-- lib: names base entry lock ids stored scheduled foreign waits notify park giveback dialog transmit
-- KEYS 1: meta of the target queue.
-- ARGV 1: now in ms, '' for the server's  2: source (its prefix and stream)  3: entry id  4: kind: Q, or a dialog kind
--   5: for Q owner; else sender's handle  6: Q ttl; else its role  7: Q delay; else its service  8: to  9: handle here when the sender
--   is the target  10: contract  11: expires  12: conversation seq  13: rest  14: body  15: code of an invalid body, ''  16: M: only mark it
--   17: number of the queue that is meant: one deleted and made anew since is another, and refuses (H16)  18: digest of the entry
--   19: era (see txhead)  20: 1 when it was refused before for a gap: what is missing will not come
-- RETURNS stored, known, dropped, bounce, skipped, marked, anew; refused or gap and a status text; lost and code and text of an Error;
--   behind: something later came already, so the sender looks whether this is its head; NOENT.
-- What bounces, or finds its conversation lost, leaves no trace here: the Error is made at the source, and whoever sends it again hears
-- the same.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return {'NOENT'} end
local P, src, id = c.P, ARGV[2], ARGV[3]
if ARGV[17] and ARGV[17] ~= '' and ARGV[17] ~= c.qn then return {'anew'} end
local name = ARGV[19] == '' and src or src .. '#' .. ARGV[19]
local hw = call('HGET', P .. 'hw', name)
if hw then
  local high, digest = string.match(hw, '^([^|]*)|?(.*)$')
  if not id_after(id, high) then
    if call('HGET', P .. 'skip', name) == id then return {'skipped'} end
    if id ~= high or digest ~= '' and digest ~= ARGV[18] then return {'behind'} end
    pcall_('HSET', P .. 'hw', name, hw) -- a server may let a WAIT behind a repeat wait for its own writes only
    return {'known'}
  end
end

-- passed notes how far the stream has come. The first era's mark is the highest of all, so that a source that forgets an era finds out.
local function passed()
  call('HSET', P .. 'hw', name, id .. '|' .. ARGV[18])
  if name == src then return end
  local all = call('HGET', P .. 'hw', src)
  if not all or id_after(id, string.match(all, '^[^|]*')) then call('HSET', P .. 'hw', src, id .. '|-') end
end

if ARGV[16] == 'M' then
  passed()
  call('HSET', P .. 'skip', name, id)
  return {'marked'}
end
local how, why, what
if ARGV[4] == 'Q' then
  if not can_send(c) then return {'refused', 'the queue ' .. c.name .. ' is off'} end
  if ARGV[7] ~= '' then
    append_scheduled(c, now + tonumber(ARGV[7]), ARGV[5], ARGV[6], ARGV[13], ARGV[14])
  else
    append_plain(c, now, ARGV[5], ARGV[6], ARGV[13], ARGV[14])
  end
  how = 'stored'
else
  if call('HEXISTS', P .. 'svc', ARGV[8]) == 0 then return {'refused', 'the queue ' .. c.name .. ' does not serve ' .. ARGV[8]} end
  how, why, what = arrive(c, now, {from = ARGV[5], role = ARGV[6], svc = ARGV[7], to = ARGV[8], toh = ARGV[9], contract = ARGV[10],
    expires = ARGV[11], seq = tonumber(ARGV[12]) or 0, k = ARGV[4], rest = ARGV[13], body = ARGV[14], code = ARGV[15] ~= '' and ARGV[15] or nil,
    anyway = ARGV[20] == '1'})
  if how == 'refused' or how == 'gap' or how == 'lost' or how == 'bounce' then return {how, why, what} end
end
passed()
flush()
return {how}
