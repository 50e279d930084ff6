-- history: whether the server is the one whose writes stand here. After a failover, or a start from a file, it may lack the last ones.
-- server names the running server: its run, its replication history and its role; '' where that cannot be asked.
local function server()
  local info = pcall_('INFO', 'server', 'replication')
  if type(info) ~= 'string' then return '' end
  local run, history = string.match(info, 'run_id:(%w+)'), string.match(info, 'master_replid:(%w+)')
  return run and sub(run, 1, 16) .. ' ' .. sub(history or '', 1, 16) .. ' ' .. (string.match(info, 'role:(%w+)') or '') or ''
end

-- grace compares the server with the one that meta names, and returns up to which end of a lease nothing is counted when that lease
-- ends: after a change all of those that were granted before, since what happened to the reader may be among what was lost.
local function grace(c)
  local v, this = call('HMGET', c.P .. 'meta', 'run', 'grace'), server()
  local till = tonumber(v[2] or 0)
  if this == '' or v[1] == this then return till end
  if v[1] and v[1] ~= '' then
    local last = call('ZREVRANGE', c.P .. 'rd', 0, 0, 'WITHSCORES')
    till = math.max(till, tonumber(last[2] or 0))
    call('HSET', c.P .. 'meta', 'grace', int(till))
  end
  call('HSET', c.P .. 'meta', 'run', this)
  return till
end
