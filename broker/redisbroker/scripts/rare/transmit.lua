-- transmit: from one endpoint to the other: straight into the target's queue when this script reaches it and nothing older of the
-- conversation waits (H13), else into the transmission stream for that target.
-- route finds the context of the queue that serves svc: our own, or, when this server is no cluster, any other's.
local routes = {}
local function route(c, ns, direct, svc)
  local r = routes[svc]
  if r ~= nil then return r end
  if call('HEXISTS', c.P .. 'svc', svc) == 1 then
    r = c
  elseif direct then
    local q = call('HGET', '{' .. ns .. '}:services', svc)
    r = q and open('{' .. ns .. '/' .. q .. '}:') or false
  else
    r = false
  end
  routes[svc] = r
  return r
end

-- send_on sends one message of conversation h (open, state checked by the caller) to its far side.
function send_on(c, now, ns, direct, h, conv, k, rest, body, code, text)
  local ep = ep_get(c, h)
  local seq = conv.snd
  if sub(ep.far, 1, 16) == 'parley/schedule/' then return seq end -- a schedule's far side listens to nobody
  if k ~= 'A' then conv.snd = seq + 1 end
  if conv.st == 'SO' and k == 'S' then conv.st = 'CO' end
  c.cvd[h] = true
  local status = ''
  if conv.txn == 0 then
    local t = route(c, ns, direct, ep.far)
    if t then
      local how, why, what = arrive(t, now, {from = h, role = ep.role, svc = ep.svc, to = ep.far, toh = ep.farh, contract = ep.contract,
        expires = ep.expires, seq = seq, k = k, rest = rest, body = body, code = code ~= '' and code or nil})
      if how == 'bounce' then
        broker_error(c, now, h, conv, code, text)
        return seq
      end
      if how == 'lost' then -- whoever ends its side hears nothing more: its first message may have been dropped by that END
        if k == 'S' then broker_error(c, now, h, conv, why, what) end
        return seq
      end
      if how ~= 'refused' and how ~= 'gap' then return seq end
      status = why
    elseif direct then
      status = 'no queue serves ' .. ep.far
    end
  end
  conv.txn = conv.txn + 1
  transmit_later(c, now, ep.far, status, {'from', h, 'role', ep.role, 'svc', ep.svc, 'to', ep.far, 'toh', ep.farh, 'contract',
    ep.contract, 'expires', ep.expires, 'seq', int(seq), 'k', k, 'rest', rest, 'code', code or '', 'text', text or '', 'body', body})
  return seq
end

-- end_conversation is END CONVERSATION of the local side (EC). code '' is plain; text is the description.
function end_conversation(c, now, ns, direct, h, conv, code, text, cleanup)
  local ep = ep_get(c, h)
  local st = conv.st
  if cleanup then
    if conv.txn > 0 then drop_waiting(c, h, conv, ep) end
    leave(c, h, conv)
    call('HDEL', c.P .. 'ep', h)
    call('HDEL', c.P .. 'ed', h)
    if st ~= 'SO' then cleaned(c, now, h, ep) end
    event(c, now, 'conversation_cleaned', 'conversation_handle', h)
    return
  end
  if st == 'CO' then
    if code ~= '' then
      if conv.txn > 0 then drop_waiting(c, h, conv, ep) end
      send_on(c, now, ns, direct, h, conv, 'E', T_ERROR, error_body(code, text))
    else
      send_on(c, now, ns, direct, h, conv, 'D', T_END, '')
    end
    leave(c, h, conv)
    if sub(ep.far, 1, 16) == 'parley/schedule/' then
      close_endpoint(c, now, h, ep)
    else
      call('HSET', c.P .. 'ed', h, 'DO|' .. int(now))
    end
  elseif st == 'SO' then
    leave(c, h, conv)
    call('HDEL', c.P .. 'ep', h)
  else
    if conv.txn > 0 then drop_waiting(c, h, conv, ep) end
    send_on(c, now, ns, direct, h, conv, 'A', '', '')
    leave(c, h, conv)
    close_endpoint(c, now, h, ep)
  end
end

-- drop_waiting makes the transmitter drop what h has waiting: everything up to the stream's last id (EC-8).
function drop_waiting(c, h, conv, ep)
  local e = call('XREVRANGE', c.P .. 'tx:' .. ep.far, '+', '-', 'COUNT', '1')
  if e[1] then call('HSET', c.P .. 'txd', h, e[1][1]) end
  c.tx = c.tx - conv.txn
  c.dirty = true
  conv.txn = 0
end

-- after_bury does what the queue says about a conversation one of whose messages was dead-lettered.
function after_bury(c, now, h)
  if c.odl ~= 'end' then return end
  local conv = conv_get(c, h)
  if conv then end_conversation(c, now, namespace(c.P), c.direct, h, conv, '127', 'a message of the conversation was dead-lettered', false) end
end

function forget_retained(c, h)
  local key = c.P .. 'rt:' .. h
  local n = call('XLEN', key)
  if n == 0 then return end
  if c.archive then
    for _, e in ipairs(call('XRANGE', key, '-', '+')) do
      call('XADD', c.P .. 'archive', '*', 'conversation_handle', h, unpack(e[2]))
    end
  end
  call('DEL', key)
  c.retained = c.retained - n
  c.dirty = true
end
