-- instant: instants by cron. Only a client can compute them; it knows what this server's clock showed a while ago, and says so.
-- first_instant reads when something is to happen: absolute ms; +ms from now; ~ms from now, up to the next whole second (an interval); or
-- at@basis, the first instant that a calendar has after basis. When that is no longer the next one by now, since the clock was moved, it
-- returns false: then due has it planned again.
function first_instant(now, s)
  local b = byte(s, 1)
  if b == 43 then return now + tonumber(sub(s, 2)) end
  if b == 126 then return math.ceil((now + tonumber(sub(s, 2))) / 1000) * 1000 end
  local at, basis = string.match(s, '^(%d+)@(%d+)$')
  if not at then return tonumber(s) end
  at, basis = tonumber(at), tonumber(basis)
  if now < basis or now >= at then return false end
  return at
end

-- arm_cron arms name, a timer (kind tm) or a schedule (sd), for at; when that is false it is named by the next due, without being run.
function arm_cron(c, kind, name, at)
  call('ZADD', c.P .. kind, int(at or the_time), name)
  if at then
    call('HDEL', c.P .. kind .. 'n', name)
  else
    call('HSET', c.P .. kind .. 'n', name, the_time_text)
  end
  note_planned(c)
  setdue(c, at or the_time)
end

-- note_planned notes when an instant by cron was armed last. A clock that shows less than that was set back, and what is armed may be further
-- away than it should be; so it stays until everything was looked at (checked).
function note_planned(c, checked)
  local last = not checked and call('HGET', c.P .. 'meta', 'planned')
  if not last or tonumber(last) < the_time then call('HSET', c.P .. 'meta', 'planned', the_time_text) end
  c.dirty = true
end
