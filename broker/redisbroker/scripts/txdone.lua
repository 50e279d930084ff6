-- txdone: the head of a transmission stream has arrived (or is known, or bounced): remove it at the source.
-- lib: names base entry lock ids stored foreign waits notify park giveback dialog transmit
-- KEYS 1: meta of the source queue.
-- ARGV 1: now in ms, '' for the server's  2: target  3: transmitter  4: entry id  5: what: done, bounce, bury, or
--   lost: the target does not know the conversation  6: code  7: text  8: digest of the entry (txhead): another may have its id now, when
--   the server lost its last writes
-- RETURNS OK, GONE when the entry is not there any more, LOST when another transmitter has the lease.
local now = clock(ARGV[1])
local c = open(sub(KEYS[1], 1, -5))
if not c then return 'GONE' end
local P, target = c.P, ARGV[2]
local l = call('HGET', P .. 'txl', target)
if not l or fields(l)[1] ~= ARGV[3] then return 'LOST' end
local r = call('XRANGE', P .. 'tx:' .. target, ARGV[4], ARGV[4])
if not r[1] then return 'GONE' end
local f, m = r[1][2], {}
if redis.sha1hex(table.concat(f, '\n')) ~= ARGV[8] then return 'GONE' end
for i = 1, #f, 2 do m[f[i]] = f[i + 1] end
call('XDEL', P .. 'tx:' .. target, ARGV[4])
-- What an END with error, or the end of a lifetime, has dropped meanwhile was taken off the counters then.
local upto = m.from and call('HGET', P .. 'txd', m.from)
local dropped = upto and not id_after(ARGV[4], upto)
if dropped then
  if ARGV[4] == upto then call('HDEL', P .. 'txd', m.from) end
else
  c.tx = c.tx - 1
  c.dirty = true
  local conv = m.from and conv_get(c, m.from)
  if conv then
    conv.txn = math.max(0, conv.txn - 1)
    c.cvd[m.from] = true
    if ARGV[5] == 'bounce' or ARGV[5] == 'lost' and (conv.st == 'SO' or conv.st == 'CO') then broker_error(c, now, m.from, conv, ARGV[6], ARGV[7]) end
  end
end
if ARGV[5] == 'bury' and not dropped then
  local t = open(P .. 't:')
  local body = m.body or ''
  local id = put(t, '5', '|' .. int(#body) .. '|||' .. int(now) .. '|S|' .. (m.rest or '') .. '|' .. (m.from or m.owner or '') .. '|' ..
    (m.seq or '') .. '|' .. int(t.seq + 1) .. '|' .. ARGV[6] .. '|' .. ARGV[7] .. '|' .. int(now) .. '|0|0|||' .. c.name, body)
  call('ZADD', t.P .. 'ix', id, id .. '-0')
  t.ready = t.ready + 1
  wake(t)
end
local s = call('HGET', P .. 'txs', target)
if s then call('HSET', P .. 'txs', target, int(now) .. '|0|') end
flush()
return 'OK'
