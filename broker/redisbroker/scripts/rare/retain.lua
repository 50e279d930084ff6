-- retain: rows kept until the conversation ends on this side (RT). rt:<handle> is a stream: status (0 received, 3 sent), seq, header, body.
local function retain(c, now, h, status, seq, header, body)
  call('XADD', c.P .. 'rt:' .. h, '*', 'status', status, 'seq', seq, 'time', int(now), 'header', header, 'body', body)
  c.retained = c.retained + 1
  c.dirty = true
end

function retain_sent(c, now, h, conv, rest, body)
  local seq = int(conv.snd)
  retain(c, now, h, '3', seq, h .. '|' .. int(#body) .. '|' .. seq .. '||' .. int(now) .. '|S|' .. rest, body)
end

-- retain_received keeps dialog messages that a commit is about to consume.
function retain_received(c, now, refs, i, j)
  for k = i, j do
    local head, body = read(c, refs[k])
    if head then
      local owner = sub(head, 1, find(head, '|', 1, true) - 1)
      if owner ~= '' and byte(owner, 2) ~= 58 and conv_get(c, owner) then
        local f = fields(head)
        retain(c, now, owner, '0', f[3], head, body)
      end
    end
  end
end

-- settle_slowly consumes refs one by one looked at: used when some units of the call must not be consumed, or some messages become
-- dead letters (ref → true), which nothing retains. Returns their bytes.
function settle_slowly(c, now, refs, dead)
  local bytes, kept = 0, {}
  for i = 1, #refs do
    local head, body = read(c, refs[i])
    if not dead or not dead[refs[i]] then kept[#kept + 1] = refs[i] end
    if head then
      bytes = bytes + #body
      local owner = sub(head, 1, find(head, '|', 1, true) - 1)
      if owner ~= '' and byte(owner, 2) ~= 58 then gone(c, owner, fields(head)[3], refs[i]) end
    end
  end
  if c.retention then retain_received(c, now, kept, 1, #kept) end
  consume(c, refs, 1, #refs)
  forget_counts(c, refs)
  return bytes
end
