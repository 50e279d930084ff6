-- producers: pc keeps the last counter of each producer: counter|what it gave|when.
-- forget_producers drops counters unused for an hour. A few are looked at whenever a new producer comes, so pc never holds many more
-- than those of the last hour.
local function forget_producers(c, now)
  local r = call('HRANDFIELD', c.P .. 'pc', '8', 'WITHVALUES')
  for i = 1, #r, 2 do
    if tonumber(string.match(r[i + 1], '%d+$')) < now - 60 * 60 * 1000 then call('HDEL', c.P .. 'pc', r[i]) end
  end
end
