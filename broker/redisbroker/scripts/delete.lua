-- delete: up to n keys of a queue are removed; its meta last, so that a half deleted queue is still found and deleted again.
-- lib: base
-- KEYS: up to 500 keys of one queue.
-- ARGV: none.
-- RETURNS how many were there.
local n = 0
for i = 1, #KEYS do n = n + call('UNLINK', KEYS[i]) end
return n
