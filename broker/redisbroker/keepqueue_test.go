package redisbroker

import (
	"strings"
	"sync"
	"testing"
	"time"

	"parley/broker"
	"parley/internal/redistest"
)

// TestABrokenQueueHoldsUpNoOther spoils keys of the first queues of the alphabet: what is due on the others arrives all the same, and
// what is wrong is said once, and once more when it is mended.
func TestABrokenQueueHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"real": redistest.Shared(t).URL(), "embedded": redistest.StartEmbedded(t).URL()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var lines []string
			h, l := newHarness(t, url, nil)
			l.opt.Log = func(msg string, args ...any) {
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, msg)
			}
			b := l.open(t)
			var defs broker.Definitions
			for _, q := range []string{"a", "b", "y", "z"} {
				defs.Queues = append(defs.Queues, broker.DefaultQueue(q, false))
			}
			l.apply(t, defs)
			for _, q := range []string{"y", "z"} {
				if _, err := b.Send(t.Context(), q, broker.Outgoing{Delay: time.Second}); err != nil {
					t.Fatal(err)
				}
			}
			l.do(t, "SET", b.prefix("a")+"retry", "not a sorted set")
			l.do(t, "SET", b.prefix("b")+"txs", "not a hash")
			h.Advance(2 * time.Second)
			promoted := 0
			for range 3 {
				rep, err := b.Keep(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				promoted += rep.Promoted
			}
			if promoted != 2 {
				t.Errorf("%d delayed messages arrived, want 2", promoted)
			}
			l.do(t, "DEL", b.prefix("a")+"retry", b.prefix("b")+"txs")
			redistest.Eventually(t, "the broken queues to be kept again", func() bool {
				if _, err := b.Keep(t.Context()); err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				defer mu.Unlock()
				return strings.Count(strings.Join(lines, "\n"), "works again") == 2
			})
			if n := strings.Count(strings.Join(lines, "\n"), "housekeeping of a queue fails"); n != 2 {
				t.Errorf("trouble was told %d times, want once for each queue:\n%s", n, strings.Join(lines, "\n"))
			}
		})
	}
}
