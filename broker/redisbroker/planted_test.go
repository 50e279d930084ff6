package redisbroker

import (
	"strings"
	"testing"

	"parley/broker/brokertest"
)

// planted are six faults of the scripts, each a line that somebody could get wrong. The randomised test has to find every
// one of them.
var planted = map[string]struct{ right, wrong string }{
	"give back at the tail instead of the front": {
		"call('LPUSH', c.P .. 'b:' .. g .. ':' .. l, unpack(t,",
		"call('RPUSH', c.P .. 'b:' .. g .. ':' .. l, unpack(t,",
	},
	"a group that I hold is given to me again": {
		"if not lv then\n    local s = slot(H, false)",
		"if not lv or lock_parse(lv) == H.me then\n    local s = slot(H, false)",
	},
	"hand over although the queue is off": {
		"local receive = on and A.nfree > 0",
		"local receive = A.nfree > 0",
	},
	"a death is not counted": {
		"local counted = per[u.slot] == 1",
		"local counted = false",
	},
	"what was put back stands at the tail": {
		"else call('LPUSH', key, ref) end",
		"else call('RPUSH', key, ref) end",
	},
	"sleeping readers are not woken": {
		"local function wake(c)\n  if c.asleep then",
		"local function wake(c)\n  if false then",
	},
}

func TestPlantedFaultsAreFound(t *testing.T) {
	t.Parallel() // with the conformance suites
	for name, f := range planted {
		t.Run(name, func(t *testing.T) {
			used := false
			patch := func(_, source string) string {
				used = used || strings.Contains(source, f.right)
				return strings.ReplaceAll(source, f.right, f.wrong)
			}
			said := brokertest.Catches(t, openEmbedded(patch, nil))
			if !used {
				t.Fatal("no script has the line that was to be spoiled")
			}
			t.Log(said)
		})
	}
}
