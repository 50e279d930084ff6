-- scheduled: messages whose time has not come. sch: number → when; schm: number → owner, time to live, rest of the header, body.
-- append_scheduled keeps a message until due; it has its sequence number already.
function append_scheduled(c, due, owner, ttl, rest, body)
  local id = number(c, nil)
  call('HSET', c.P .. 'schm', id, owner .. '\n' .. ttl .. '\n' .. rest .. '\n' .. body)
  call('ZADD', c.P .. 'sch', int(due), id)
  c.scheduled = c.scheduled + 1
  c.dirty = true
  setdue(c, due)
  return id
end
