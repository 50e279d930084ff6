-- ids: the order of stream ids that Redis made.
-- id_after reports whether stream id a comes after b.
local function id_after(a, b)
  local am, as = string.match(a, '^(%d+)-(%d+)$')
  local bm, bs = string.match(b, '^(%d+)-(%d+)$')
  am, bm, as, bs = tonumber(am), tonumber(bm), tonumber(as), tonumber(bs)
  return am > bm or (am == bm and as > bs)
end
