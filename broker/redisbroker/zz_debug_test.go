package redisbroker

import (
	"strings"
	"testing"

	"parley/broker/brokertest"
)

var zzFixes = [][2]string{
	{"call('PUBLISH', 'parley:' .. namespace(c.P), text)", "call('PUBLISH', 'parley:' .. namespace(c.P) .. ':wake', text)"},
	{"if not call('ZSCORE', c.P .. 'rd', name) then return 'OK' end", "local lease = call('ZSCORE', c.P .. 'rd', name)\nif not lease or tonumber(lease) < now then return 'OK' end"},
	{"        H.tokens[#H.tokens + 1] = x.slot\n", "        H.closed[x.slot] = nil\n        H.tokens[#H.tokens + 1] = x.slot\n"},
	{"if #items > 0 then emit(H, slots[ref], '', items) end", "if #items > 0 then emit(H, slots[ref], '', items) else H.closed[slots[ref]] = nil; H.tokens[#H.tokens + 1] = slots[ref]; H.n = H.n + 1 end"},
	{"    hand_ready(H, left(H))\n    hand_plain(H, left(H))\n", `    local function waiting() return call('ZCARD', P .. 'ready') + call('ZCARD', P .. 'bp') end
    local was = waiting()
    while was > 0 and left(H) > 0 and not H.alone do
      hand_ready(H, left(H))
      hand_plain(H, left(H))
      local is = waiting()
      if is >= was then break end
      was = is
    end
`},
}

func zzPatch(name, source string) string {
	for _, f := range zzFixes {
		source = strings.ReplaceAll(source, f[0], f[1])
	}
	return source
}

func TestZZDebug(t *testing.T) {
	brokertest.Run(t, openReal(zzPatch))
}
