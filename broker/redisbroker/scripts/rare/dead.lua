-- dead: what becomes a dead letter, or is dropped when it would be handed out.
-- bury moves one entry, already consumed by the caller, to the dead-letter queue of c.
function bury(c, now, ref, header, body, reason, desc, d, p, last, group)
  local dl = open(c.P .. 'd:')
  local f, n = fields(header)
  local owner, cseq = f[1], f[3]
  f[1] = ''; f[3] = ''; f[4] = ''
  f[10] = owner; f[11] = cseq; f[12] = int(seq_of(ref)); f[13] = reason; f[14] = desc; f[15] = int(now)
  f[16] = int(d); f[17] = int(p); f[18] = last; f[19] = group or ''; f[20] = c.name
  for i = n + 1, 9 do f[i] = '' end
  local id = put(dl, '5', table.concat(f, '|', 1, 20), body)
  call('ZADD', dl.P .. 'ix', f[12], id .. '-0')
  call('HINCRBY', c.P .. 'reasons', reason, 1)
  dl.ready = dl.ready + 1
  wake(dl)
end

-- drop consumes messages that nobody will get: of an ended conversation, or expired. counted: the counter still has them.
function drop(H, ref, h, b, counted)
  local c = H.c
  consume(c, {ref}, 1, 1)
  forget_counts(c, {ref})
  c.bytes = c.bytes - #b
  if counted then c.ready = c.ready - 1 end
end
