-- notify: events as messages, and external activation, which is one (AC-19, AC-20). meta.actq: queues that are told when a reader is
-- needed, joined by commas, behind a + when every queue is in reach. meta.act: when they were told last|when somebody received first
-- since then|when a receive found nothing last.
-- behind_others says that older messages of c wait for a target: one more has to wait behind them (H13)
function behind_others(c, target) return c.tx > 0 and call('XLEN', c.P .. 'tx:' .. target) > 0 end

-- transmit_later writes to the transmission stream of a target: its entry is flat fields, body last.
function transmit_later(c, now, target, status, a)
  call('XADD', c.P .. 'tx:' .. target, '*', unpack(a))
  if call('HSETNX', c.P .. 'txs', target, int(now) .. '|0|' .. status) == 1 then
    setdue(c, now)
  end
  c.tx = c.tx + 1
  c.dirty = true
end

-- notify sends an event, body as JSON, as an ordinary message to the queues of the services named for it (event_notifications): in
-- this script when they are in reach (direct), else through the transmission queue.
function notify(c, now, kind, body, queues, direct)
  local rest = kind .. '@' .. plain_text(c.name):gsub('[^%w._-]', '_') .. '@' .. int(now) .. '|' .. 'parley/EventNotification|event=' .. kind
  for q in string.gmatch(queues, '[^,]+') do
    local t = direct and open('{' .. namespace(c.P) .. '/' .. q .. '}:')
    if t and can_send(t) and not behind_others(c, 'queue:' .. q) then
      append_plain(t, now, '', '', rest, body)
    else
      transmit_later(c, now, 'queue:' .. q, '', {'k', 'Q', 'to', q, 'owner', '', 'ttl', '', 'delay', '', 'rest', rest, 'body', body})
    end
  end
end

-- activate tells that a reader would have useful work: something can be handed out, nobody found the queue empty in the last 5 s, and
-- since it was told last somebody has been receiving for 5 s, or nobody came for a minute. Returns when to look again, if ever.
function activate(c)
  if c.ready <= 0 or not can_receive(c) then return nil end
  local told, received, empty = string.match(c.act or '||', '^(%d*)|(%d*)|(%d*)$')
  local at = empty ~= '' and tonumber(empty) + 5000 or 0
  if told ~= '' then at = math.max(at, received ~= '' and tonumber(received) + 5000 or tonumber(told) + 60000) end
  if at > the_time and at <= the_time + 60000 then return at end -- what is further away was noted before the clock was set back
  if not deliverable(c) then return nil end -- whatever changes that wakes
  c.act = the_time_text .. '||' .. empty
  call('HSET', c.P .. 'meta', 'act', c.act)
  event(c, the_time, 'queue_activation', 'ready', int(c.ready))
  local body = fmt('{"type":"queue_activation","namespace":%s,"queue":%s,"ready":%d,"time":%d}', cjson.encode(plain_text(namespace(c.P))),
    cjson.encode(plain_text(c.name)), c.ready, the_time)
  notify(c, the_time, 'queue_activation', body, string.match(c.actq, '^+?(.*)$'), c.direct or byte(c.actq, 1) == 43)
  return the_time + 60000
end

-- received notes that somebody received, and whether that found nothing: whoever was told has come, and may need help.
function received(c, nothing)
  local told, first, empty = string.match(c.act or '||', '^(%d*)|(%d*)|(%d*)$')
  local act = told .. '|' .. (first ~= '' and first or the_time_text) .. '|' .. (nothing and the_time_text or empty)
  if act ~= c.act then
    c.act = act
    call('HSET', c.P .. 'meta', 'act', act)
  end
  stir(c)
end
